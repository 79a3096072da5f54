// The checks of openai_node.py: `node openai_node.mjs PACKAGES OPEN_URL SMALL_URL MODEL TOKEN` prints a line of JSON per
// check, {name, seconds, problem}.
import assert from "node:assert/strict";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [packages, open, small, model, token] = process.argv.slice(2);
const OpenAI = (await import(pathToFileURL(path.join(packages, "node_modules/openai/index.mjs")))).default;
const client = new OpenAI({ baseURL: open, apiKey: "none", maxRetries: 0 });
const withToken = new OpenAI({ baseURL: small, apiKey: token, maxRetries: 0 });
const HI = [{ role: "user", content: "Hi" }];
const ask = { model, prompt: "word", max_tokens: 24, temperature: 0 };
const chat = { model, messages: HI, max_tokens: 24, temperature: 0 };

async function refused(call, kind, status, fields) {
  try {
    await call();
  } catch (error) {
    assert.ok(error instanceof kind, `${error.constructor.name} instead of ${kind.name}: ${error.message}`);
    assert.equal(error.status, status);
    for (const [key, value] of Object.entries(fields ?? {})) assert.equal(error[key], value, key);
    return error;
  }
  assert.fail(`it was answered instead of ${kind.name}`);
}

async function pieces(stream) {
  const all = [];
  for await (const piece of stream) all.push(piece);
  return all;
}

const checks = {
  async models_are_listed() {
    const listed = await pieces(await client.models.list());
    assert.deepEqual(listed.map((m) => [m.id, m.object, m.owned_by]), [[model, "model", "systole"]]);
    assert.equal((await client.models.retrieve(model)).id, model);
  },

  async a_completion_whole_and_streamed() {
    const whole = await client.completions.create(ask);
    assert.equal(whole.object, "text_completion");
    assert.equal(whole.usage.total_tokens, whole.usage.prompt_tokens + whole.usage.completion_tokens);
    assert.ok(whole._request_id, "no request id in the headers");
    const parts = await pieces(await client.completions.create({ ...ask, stream: true }));
    assert.equal(parts.map((p) => p.choices[0].text).join(""), whole.choices[0].text);
    assert.equal(parts.at(-1).choices[0].finish_reason, whole.choices[0].finish_reason);
  },

  async a_chat_whole_and_streamed() {
    const whole = (await client.chat.completions.create(chat)).choices[0];
    assert.equal(whole.message.role, "assistant");
    const parts = await pieces(await client.chat.completions.create({ ...chat, stream: true }));
    assert.equal(parts.map((p) => p.choices[0].delta.content ?? "").join(""), whole.message.content);
    assert.equal(parts[0].choices[0].delta.role, "assistant");
    assert.equal(parts.at(-1).choices[0].finish_reason, whole.finish_reason);
  },

  async the_streams_helper_of_the_client() {
    const whole = (await client.chat.completions.create(chat)).choices[0].message.content;
    let said = "";
    const runner = client.chat.completions.stream(chat).on("content", (delta) => (said += delta));
    assert.equal(await runner.finalContent(), whole);
    assert.equal(said, whole);
  },

  async a_stream_tells_its_usage() {
    const asked = { ...chat, max_tokens: 5, stream: true, stream_options: { include_usage: true } };
    const last = (await pieces(await client.chat.completions.create(asked))).at(-1);
    assert.deepEqual(last.choices, []);
    assert.ok(last.usage.completion_tokens > 0 && last.usage.completion_tokens <= 5);
  },

  async several_prompts_answers_and_a_seed() {
    const asked = { model, prompt: ["word", "list"], n: 2, seed: 7, max_tokens: 6 };
    const one = await client.completions.create(asked), two = await client.completions.create(asked);
    assert.deepEqual(one.choices.map((c) => c.index), [0, 1, 2, 3]);
    assert.deepEqual(one.choices, two.choices);
  },

  async logprobs_of_an_echo_and_of_a_chat() {
    const echo = (await client.completions.create({ ...ask, echo: true, logprobs: 1, max_tokens: 0 })).choices[0];
    assert.equal(echo.text, "word");
    assert.equal(echo.logprobs.token_logprobs[0], null);
    assert.equal(echo.logprobs.tokens.length, echo.logprobs.text_offset.length);
    const said = (await client.chat.completions.create({ ...chat, logprobs: true, top_logprobs: 2 })).choices[0];
    for (const each of said.logprobs.content) assert.equal(each.token, each.top_logprobs[0].token);
  },

  async stop_ends_an_answer() {
    const whole = (await client.completions.create(ask)).choices[0].text;
    const stop = whole.trim().slice(1, 3);
    const cut = (await client.completions.create({ ...ask, stop: [stop] })).choices[0];
    assert.deepEqual([cut.text, cut.finish_reason], [whole.slice(0, whole.indexOf(stop)), "stop"]);
  },

  async an_answer_of_a_schema_is_parsed() {
    const schema = { type: "object", properties: { size: { type: "integer", minimum: 1, maximum: 99 } },
                     required: ["size"], additionalProperties: false };
    const format = { type: "json_schema", json_schema: { name: "sized", strict: true, schema } };
    const done = await client.chat.completions.parse({ ...chat, max_tokens: 100, seed: 1, response_format: format });
    const { size } = done.choices[0].message.parsed ?? JSON.parse(done.choices[0].message.content);
    assert.ok(Number.isInteger(size) && size >= 1 && size <= 99, `${size}`);
  },

  async vectors_of_texts() {
    const done = await client.embeddings.create({ model, input: ["word", "a list", "word"] });
    assert.deepEqual(done.data.map((d) => [d.index, d.embedding.length]), [[0, 16], [1, 16], [2, 16]]);
    assert.deepEqual(done.data[0].embedding, done.data[2].embedding);
    const raw = await client.embeddings.create({ model, input: "word", encoding_format: "float" });
    raw.data[0].embedding.forEach((x, i) => assert.ok(Math.abs(x - done.data[0].embedding[i]) < 1e-6));
  },

  async errors_have_their_kinds_and_fields() {
    const complete = (more) => () => client.completions.create({ ...ask, ...more });
    await refused(complete({ model: "other" }), OpenAI.NotFoundError, 404, { code: "model_not_found" });
    await refused(complete({ temperature: 3 }), OpenAI.BadRequestError, 400, { param: "temperature" });
    await refused(complete({ temprature: 1 }), OpenAI.BadRequestError, 400, { param: "temprature" });
    await refused(complete({ prompt: "word ".repeat(4000) }), OpenAI.BadRequestError, 400,
                  { code: "context_length_exceeded", type: "invalid_request_error" });
    await refused(complete({ stream: true, stop: [1] }), OpenAI.BadRequestError, 400, { param: "stop" });
  },

  async a_token_is_asked_for() {
    const stranger = new OpenAI({ baseURL: small, apiKey: "another-token", maxRetries: 0 });
    await refused(() => stranger.completions.create(ask), OpenAI.AuthenticationError, 401, { code: "invalid_api_key" });
    assert.equal((await withToken.completions.create(ask)).choices.length, 1);
  },

  async a_full_server_says_429_and_an_aborted_stream_frees_it() {
    const asked = { model, prompt: "word", n: 4, max_tokens: 480, stream: true, ignore_eos: true, min_tokens: 480 };
    const stream = await withToken.completions.create(asked);
    const first = await stream[Symbol.asyncIterator]().next();
    assert.ok(!first.done);
    const error = await refused(() => withToken.completions.create({ ...ask, n: 2 }), OpenAI.RateLimitError, 429);
    assert.ok(Number(error.headers.get("retry-after")) >= 1);
    stream.controller.abort();
    const patient = new OpenAI({ baseURL: small, apiKey: token, maxRetries: 8 });
    assert.equal((await patient.completions.create({ ...ask, max_tokens: 2 })).choices.length, 1);
  },
};

for (const [name, run] of Object.entries(checks)) {
  const began = performance.now();
  let problem = null;
  try {
    await run();
  } catch (error) {
    problem = error.stack.split("\n").slice(0, 4).join(" | ");
  }
  console.log(JSON.stringify({ name, seconds: (performance.now() - began) / 1000, problem }));
}
