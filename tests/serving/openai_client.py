#!/usr/bin/env python3
"""OpenAI's own Python client against `systole serve`: every route, whole and streamed, and what is refused.

  tests/serving/openai_client.py PROGRAM PACKAGES [--only NAME] [--keep]

PACKAGES is the folder into which tools/oracles/install puts the client (section [openai]). A tiny model is trained, two
steps, and served twice: once open, and once with a token, one slot and few that wait. Prints a row per check.
GTEST_OUTPUT=xml:FILE writes a GoogleTest report, as tools/run-tests reads it.
"""
import argparse
import asyncio
import base64
import contextlib
import json
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import traceback

from harness import CHECKS, MODEL, Server, check, equal, error_of, holds, refused, report, train

ROOT = pathlib.Path(__file__).resolve().parents[2]

TEMPLATE = "{% for m in messages %}{{ m['role'] + ': ' + m['content'] + '\\n' }}{% endfor %}{{ 'assistant:' }}"
TOKEN = "a-token"
HI = [{"role": "user", "content": "Hi"}]


# --- With the open server: two slots, a chat template, vectors by the mean of the last hidden states.

@check("open")
def models_are_listed(s):
    models = list(s.client.models.list())
    equal([m.id for m in models], [MODEL])
    equal((models[0].object, models[0].owned_by), ("model", "systole"))
    equal(s.client.models.retrieve(MODEL).id, MODEL)


@check("open")
def an_unknown_model_is_404(s):
    for call in (lambda: s.client.models.retrieve("other"),
                 lambda: s.client.completions.create(model="other", prompt="x"),
                 lambda: s.client.chat.completions.create(model="other", messages=HI)):
        refused(call, s.openai.NotFoundError, 404, code="model_not_found")


@check("open")
def a_completion_whole(s):
    done = s.client.completions.create(model=MODEL, prompt="word", max_tokens=8, temperature=0)
    equal((done.object, done.model, len(done.choices)), ("text_completion", MODEL, 1))
    holds(done.id.startswith("cmpl-") and abs(done.created - time.time()) < 600, f"id {done.id}, created {done.created}")
    holds(done.choices[0].finish_reason in ("stop", "length"), done.choices[0].finish_reason)
    equal(done.usage.total_tokens, done.usage.prompt_tokens + done.usage.completion_tokens)
    holds(done._request_id, "the client finds no request id in the headers")


@check("open")
def a_completion_streamed(s):
    whole = s.client.completions.create(model=MODEL, prompt="word", max_tokens=24, temperature=0).choices[0]
    text, reasons = "", []
    for piece in s.client.completions.create(model=MODEL, prompt="word", max_tokens=24, temperature=0, stream=True):
        equal(piece.object, "text_completion")
        equal(piece.usage, None, "usage of a stream that did not ask for it")
        text += piece.choices[0].text
        reasons.append(piece.choices[0].finish_reason)
    equal(text, whole.text)
    equal([r for r in reasons if r], [whole.finish_reason])
    equal(reasons[-1], whole.finish_reason, "the reason of the last piece")


@check("open")
def prompts_may_be_several_and_tokens(s):
    tokens = json.loads(s.raw("POST", "/tokenize", json.dumps({"prompt": "word"}))[2])["tokens"]
    ask = {"model": MODEL, "max_tokens": 6, "temperature": 0}
    both = s.client.completions.create(prompt=["word", "list"], **ask)
    equal([c.index for c in both.choices], [0, 1])
    one = s.client.completions.create(prompt=tokens, **ask)
    equal(one.choices[0].text, both.choices[0].text)
    lists = s.client.completions.create(prompt=[tokens, tokens], **ask)
    equal([c.text for c in lists.choices], [one.choices[0].text] * 2)


@check("open")
def a_chat_whole(s):
    done = s.client.chat.completions.create(model=MODEL, messages=HI, max_tokens=8, temperature=0)
    equal((done.object, done.choices[0].message.role), ("chat.completion", "assistant"))
    holds(done.id.startswith("chatcmpl-"), done.id)
    holds(isinstance(done.choices[0].message.content, str), done.choices[0].message)
    parts = [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}]
    again = s.client.chat.completions.create(model=MODEL, messages=parts, max_tokens=8, temperature=0)
    equal(again.choices[0].message.content, done.choices[0].message.content, "the answer to text in parts")


@check("open")
def a_chat_streamed(s):
    ask = {"model": MODEL, "messages": HI, "max_tokens": 24, "temperature": 0}
    whole = s.client.chat.completions.create(**ask).choices[0]
    text, roles, reasons = "", [], []
    for piece in s.client.chat.completions.create(stream=True, **ask):
        equal(piece.object, "chat.completion.chunk")
        text += piece.choices[0].delta.content or ""
        roles.append(piece.choices[0].delta.role)
        reasons.append(piece.choices[0].finish_reason)
    equal(text, whole.message.content)
    equal([r for r in roles if r], ["assistant"], "who speaks")
    equal(roles[0], "assistant", "the role of the first piece")
    equal([r for r in reasons if r], [whole.finish_reason])


@check("open")
def the_streams_helper_of_the_client(s):
    ask = {"model": MODEL, "messages": HI, "max_tokens": 24, "seed": 1, "extra_body": {"ignore_eos": True}}
    whole = s.client.chat.completions.create(**ask).choices[0].message.content
    # The helper takes no answer that is cut by its length.
    stop = next(c for i, c in enumerate(whole) if i > 0 and c.isascii() and whole.index(c) == i)
    with s.client.chat.completions.stream(stop=stop, **ask) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_completion()
    holds("content.delta" in kinds and "content.done" in kinds, kinds)
    equal(final.choices[0].message.content, whole[:whole.index(stop)])
    equal(final.choices[0].finish_reason, "stop")


@check("open")
def a_stream_tells_its_usage(s):
    for pieces in (s.client.completions.create(model=MODEL, prompt="word", max_tokens=5, temperature=0, stream=True,
                                               stream_options={"include_usage": True}),
                   s.client.chat.completions.create(model=MODEL, messages=HI, max_tokens=5, temperature=0, stream=True,
                                                    stream_options={"include_usage": True})):
        pieces = list(pieces)
        equal([p.usage for p in pieces[:-1] if p.usage], [], "usage before the last piece")
        equal(pieces[-1].choices, [], "choices of the last piece")
        usage = pieces[-1].usage
        holds(0 < usage.completion_tokens <= 5 and usage.prompt_tokens > 0, usage)
    pieces = list(s.client.completions.create(
        model=MODEL, prompt="word", max_tokens=5, temperature=0, stream=True, extra_body={"ignore_eos": True},
        stream_options={"include_usage": True, "continuous_usage_stats": True}))
    made = [p.usage.completion_tokens for p in pieces]
    holds(made == sorted(made) and made[0] >= 1 and made[-1] == 5, f"tokens so far in each piece: {made}")


@check("open")
def n_answers(s):
    for choices in (s.client.completions.create(model=MODEL, prompt="word", n=3, seed=1, max_tokens=6).choices,
                    s.client.chat.completions.create(model=MODEL, messages=HI, n=3, seed=1, max_tokens=6).choices):
        equal([c.index for c in choices], [0, 1, 2])
    seen = {p.choices[0].index
            for p in s.client.completions.create(model=MODEL, prompt="word", n=3, max_tokens=6, stream=True)}
    equal(seen, {0, 1, 2})


@check("open")
def logprobs_of_a_completion(s):
    choice = s.client.completions.create(model=MODEL, prompt="word", logprobs=2, max_tokens=5, temperature=0).choices[0]
    logprobs = choice.logprobs
    equal({len(logprobs.tokens), len(logprobs.text_offset), len(logprobs.top_logprobs)}, {len(logprobs.token_logprobs)})
    holds(all(p <= 0 for p in logprobs.token_logprobs), logprobs.token_logprobs)
    holds(all(2 <= len(top) <= 3 for top in logprobs.top_logprobs), logprobs.top_logprobs)
    for p, top in zip(logprobs.token_logprobs, logprobs.top_logprobs):
        holds(abs(p - max(top.values())) < 1e-6, "with temperature 0 the token is the likeliest")


@check("open")
def logprobs_of_an_echo(s):
    ask = {"model": MODEL, "logprobs": 1, "temperature": 0, "echo": True}
    tokens = json.loads(s.raw("POST", "/tokenize", json.dumps({"prompt": "word 7 of"}))[2])["tokens"]
    whole = s.client.completions.create(prompt="word 7 of", max_tokens=1, **ask).choices[0]
    logprobs = whole.logprobs
    equal({len(logprobs.tokens), len(logprobs.text_offset), len(logprobs.top_logprobs)}, {len(tokens) + 1})
    equal((logprobs.token_logprobs[0], logprobs.top_logprobs[0], logprobs.text_offset[0]), (None, None, 0))
    holds(all(p <= 0 for p in logprobs.token_logprobs[1:]), logprobs.token_logprobs)
    equal(logprobs.text_offset[-1], len("word 7 of"))
    for more in ({"prompt": tokens, "max_tokens": 0}, {"prompt": "word 7 of", "max_tokens": 0, "stream": True}):
        done = s.client.completions.create(**more, **ask)
        pieces = list(done) if "stream" in more else [done]
        equal("".join(p.choices[0].text for p in pieces), "word 7 of")
        equal([p for piece in pieces for p in piece.choices[0].logprobs.token_logprobs], logprobs.token_logprobs[:-1])
        equal(pieces[-1].choices[0].finish_reason, "length")


@check("open")
def logprobs_of_a_chat(s):
    ask = {"model": MODEL, "messages": HI, "logprobs": True, "top_logprobs": 3, "max_tokens": 5, "temperature": 0}
    whole = s.client.chat.completions.create(**ask)
    tokens = whole.choices[0].logprobs.content
    equal(len(tokens), whole.usage.completion_tokens)
    for token in tokens:
        equal(len(token.top_logprobs), 3)
        equal(token.token, token.top_logprobs[0].token, "the likeliest with temperature 0")
        holds(token.logprob <= 0 and (token.bytes is None or bytes(token.bytes)), token)
    streamed = [t for p in s.client.chat.completions.create(stream=True, **ask) if p.choices and p.choices[0].logprobs
                for t in p.choices[0].logprobs.content]
    equal([t.token for t in streamed], [t.token for t in tokens])


@check("open")
def stop_ends_an_answer(s):
    whole = s.client.completions.create(model=MODEL, prompt="word", max_tokens=24, temperature=0).choices[0].text
    stop = whole.strip()[1:3] or whole[:1]
    holds(stop, "the model says nothing")
    for stops in (stop, [stop, "nowhere to be found"]):
        done = s.client.completions.create(model=MODEL, prompt="word", max_tokens=24, temperature=0, stop=stops).choices[0]
        equal(done.text, whole[:whole.index(stop)])
        equal(done.finish_reason, "stop")


@check("open")
def a_seed_repeats_an_answer(s):
    def ask(seed):
        return s.client.completions.create(model=MODEL, prompt="word", seed=seed, max_tokens=24, temperature=1,
                                           extra_body={"ignore_eos": True}).choices[0].text
    equal(ask(7), ask(7))
    holds(len({ask(seed) for seed in range(4)}) > 1, "four seeds give one answer")


@check("open")
def max_completion_tokens_limits_a_chat(s):
    done = s.client.chat.completions.create(model=MODEL, messages=HI, max_completion_tokens=3, temperature=0,
                                            extra_body={"ignore_eos": True})
    equal((done.usage.completion_tokens, done.choices[0].finish_reason), (3, "length"))


@check("open")
def wrong_requests_name_the_field(s):
    def ask(**more):
        return lambda: s.client.completions.create(**{"model": MODEL, "prompt": "x", **more})
    bad = s.openai.BadRequestError
    refused(ask(extra_body={"temprature": 1}), bad, 400, "temprature")
    refused(ask(max_tokens="many"), bad, 400, "max_tokens")
    refused(ask(temperature=3), bad, 400, "temperature")
    refused(ask(n=0), bad, 400, "n")
    refused(lambda: s.client.chat.completions.create(model=MODEL, messages=[]), bad, 400, "messages")
    refused(lambda: s.client.chat.completions.create(model=MODEL, messages=[{"role": "no one", "content": "x"}]), bad,
            400, "messages")
    equal(error_of(s.raw("POST", "/v1/completions", json.dumps({"prompt": "x"})), 400)["param"], "model")


@check("open")
def fields_that_change_no_answer_are_taken(s):
    done = s.client.chat.completions.create(
        model=MODEL, messages=HI, max_tokens=2, user="me", metadata={"a": "b"}, store=False, service_tier="auto",
        safety_identifier="me", prompt_cache_key="mine", frequency_penalty=0, presence_penalty=0, top_p=1, logit_bias={},
        response_format={"type": "text"}, tool_choice="none")
    equal(len(done.choices), 1)
    refused(lambda: s.client.chat.completions.create(model=MODEL, messages=HI, store=True), s.openai.BadRequestError, 400,
            "store")


@check("open")
def a_prompt_that_does_not_fit(s):
    for call in (lambda: s.client.completions.create(model=MODEL, prompt="word " * 4000),
                 lambda: s.client.chat.completions.create(
                     model=MODEL, messages=[{"role": "user", "content": "word " * 600}])):
        refused(call, s.openai.BadRequestError, 400, code="context_length_exceeded")


@check("open")
def bodies_that_are_no_requests(s):
    for body in (b"{", b"", b"[]", b"5", b'{"model": "tiny-1", "prompt": "x"} {}', b"\xff", b"[" * 100000):
        error_of(s.raw("POST", "/v1/completions", body), 400)


@check("open")
def text_is_utf8(s):
    for bad in (b'"\xff"', b'"a\xc3"', b'"\xed\xa0\x80"', b'"\\ud800"'):
        error_of(s.raw("POST", "/v1/completions", b'{"model": "tiny-1", "prompt": ' + bad + b"}"), 400)
    done = s.client.completions.create(model=MODEL, prompt="Grüße, 世界 🙂\0", max_tokens=2)
    equal(len(done.choices), 1)


@check("open")
def a_huge_body_is_413(s):
    error = refused(lambda: s.client.completions.create(model=MODEL, prompt="x" * (5 << 20)), s.openai.APIStatusError, 413)
    holds("body" in error.message, error.message)


@check("open")
def methods_and_paths(s):
    status, headers, body = s.raw("HEAD", "/v1/models")
    equal((status, body), (200, b""))
    holds(int(headers["content-length"]) > 0, headers)
    for method, path, allowed in (("OPTIONS", "/v1/completions", "POST"), ("GET", "/v1/chat/completions", "POST"),
                                  ("DELETE", "/v1/models", "GET, HEAD"), ("PUT", "/metrics", "GET, HEAD")):
        reply = s.raw(method, path, b"" if method == "PUT" else None)
        error_of(reply, 405)
        equal(reply[1]["allow"], allowed, f"Allow of {path}")
    error_of(s.raw("GET", "/v1/nothing"), 404)


@check("open")
def health_tokens_and_metrics(s):
    for path in ("/health/live", "/health/ready", "/health"):
        equal(s.raw("GET", path)[0], 200, path)
    tokens = json.loads(s.raw("POST", "/tokenize", json.dumps({"prompt": "word"}))[2])
    equal(tokens["count"], len(tokens["tokens"]))
    holds(tokens["max_model_len"] == 512, tokens)
    text = json.loads(s.raw("POST", "/detokenize", json.dumps({"tokens": tokens["tokens"]}))[2])["prompt"]
    equal(text, "word")
    before = s.metric("vllm:generation_tokens_total")
    s.client.completions.create(model=MODEL, prompt="word", max_tokens=4, extra_body={"ignore_eos": True})
    equal(s.metric("vllm:generation_tokens_total") - before, 4)


@check("open")
def vectors_as_floats_and_as_base64(s):
    texts = ["word", "a list that goes on", "word"]
    done = s.client.embeddings.create(model=MODEL, input=texts)  # the client asks for base64 by itself
    equal((done.object, [d.index for d in done.data]), ("list", [0, 1, 2]))
    equal({len(d.embedding) for d in done.data}, {16})
    equal(done.usage.total_tokens, done.usage.prompt_tokens)
    floats = s.client.embeddings.create(model=MODEL, input=texts, encoding_format="float")
    for a, b in zip(done.data, floats.data):
        holds(max(abs(x - y) for x, y in zip(a.embedding, b.embedding)) < 1e-6, "the two formats differ")
    holds(max(abs(x - y) for x, y in zip(done.data[0].embedding, done.data[2].embedding)) < 1e-6, "one text, two vectors")
    holds(abs(sum(x * x for x in done.data[1].embedding) - 1) < 1e-5, "its length is not 1")
    short = s.client.embeddings.create(model=MODEL, input="word", dimensions=4).data[0].embedding
    holds(len(short) == 4 and abs(sum(x * x for x in short) - 1) < 1e-5, short)
    raw = json.loads(s.raw("POST", "/v1/embeddings", json.dumps(
        {"model": MODEL, "input": "word", "encoding_format": "base64"}))[2])["data"][0]["embedding"]
    equal(len(struct.unpack("<16f", base64.b64decode(raw))), 16)
    bad = s.openai.BadRequestError
    refused(lambda: s.client.embeddings.create(model=MODEL, input=[]), bad, 400, "input")
    refused(lambda: s.client.embeddings.create(model=MODEL, input="word", dimensions=17), bad, 400, "dimensions")
    refused(lambda: s.client.embeddings.create(model=MODEL, input="word " * 4000), bad, 400,
            code="context_length_exceeded")
    refused(lambda: s.client.embeddings.create(model="other", input="x"), s.openai.NotFoundError, 404)


@check("open")
def many_at_once(s):
    async def all_of_them():
        async with s.openai.AsyncOpenAI(base_url=s.url, api_key="none", max_retries=0) as client:
            return await asyncio.gather(*(client.completions.create(model=MODEL, prompt=f"word {i % 3}", max_tokens=8,
                                                                    temperature=0) for i in range(9)))
    texts = [done.choices[0].text for done in asyncio.run(all_of_them())]
    equal(texts[:3] * 3, texts, "what equal prompts get")


# --- With the small server: a token, one slot, three that wait.

@check("small")
def a_token_is_asked_for(s):
    for key in ("another-token", "", TOKEN + "x"):
        reply = s.raw("GET", "/v1/models", headers={"Authorization": "Bearer " + key} if key else None)
        equal(error_of(reply, 401)["code"], "invalid_api_key")
        equal(reply[1]["www-authenticate"], "Bearer")
    stranger = s.openai.OpenAI(base_url=s.url, api_key="another-token", max_retries=0)
    refused(lambda: stranger.completions.create(model=MODEL, prompt="x"), s.openai.AuthenticationError, 401)
    equal([m.id for m in s.client.models.list()], [MODEL])
    equal(s.raw("GET", "/health/live")[0], 200, "health without a token")


def long_stream(s, n):
    return s.client.completions.create(model=MODEL, prompt="word", n=n, max_tokens=480, stream=True,
                                       extra_body={"ignore_eos": True, "min_tokens": 480})


@check("small")
def a_full_server_says_429_and_when_to_try_again(s):
    with long_stream(s, 4) as pieces:
        next(iter(pieces))
        error = refused(lambda: s.client.completions.create(model=MODEL, prompt="x", n=2), s.openai.RateLimitError, 429)
        holds(int(error.response.headers["retry-after"]) >= 1, dict(error.response.headers))
        patient = s.openai.OpenAI(base_url=s.url, api_key=TOKEN, max_retries=8)
        pieces.close()
        equal(len(patient.completions.create(model=MODEL, prompt="x", max_tokens=2).choices), 1)
    refused(lambda: s.client.completions.create(model=MODEL, prompt="x", n=9), s.openai.BadRequestError, 400, "n")


@check("small")
def a_client_that_leaves_frees_its_slot(s):
    token = {"Authorization": "Bearer " + TOKEN}
    before, made = s.metric("systole:cancelled_total", token), s.metric("vllm:generation_tokens_total", token)
    with long_stream(s, 4) as pieces:
        next(iter(pieces))
    until = time.monotonic() + 20
    while s.metric("vllm:num_requests_running", token) + s.metric("vllm:num_requests_waiting", token) > 0:
        holds(time.monotonic() < until, "its sequences still run")
        time.sleep(0.02)
    holds(s.metric("systole:cancelled_total", token) > before, "nothing was cancelled")
    holds(s.metric("vllm:generation_tokens_total", token) - made < 4 * 480, "all was computed for nobody")
    equal(len(s.client.completions.create(model=MODEL, prompt="x", max_tokens=2).choices), 1)


@check("small")
def vectors_need_a_pooling_that_was_said(s):
    error = refused(lambda: s.client.embeddings.create(model=MODEL, input="x"), s.openai.BadRequestError, 400)
    holds("--pooling" in error.message, error.message)


# ---

def prepare(program, folder):
    """The model, and what its servers need beside it."""
    train(program, folder, 512)
    (folder / "chat.jinja").write_text(TEMPLATE, encoding="utf-8")
    (folder / "tokens").write_text(TOKEN + "\n", encoding="utf-8")
    (folder / "tokens").chmod(0o600)


def start(program, folder, of, log="serve.out"):
    more = (["--slots", "2", "--waiting", "32", "--chat-template", "chat.jinja", "--pooling", "mean"] if of == "open"
            else ["--slots", "1", "--waiting", "3", "--token-file", "tokens"])
    return Server(program, folder, MODEL, *more, log=log)


@contextlib.contextmanager
def servers(program, folder, packages):
    sys.path.insert(0, str(packages))
    import openai  # of the folder that was installed a moment ago
    prepare(program, folder)

    def serve(of):
        server = start(program, folder, of)
        server.openai = openai
        server.client = openai.OpenAI(base_url=server.url, api_key="none" if of == "open" else TOKEN, max_retries=0,
                                      timeout=60)
        return server
    yield serve


def run_checks(program, folder, packages, only):
    """(name, seconds, what is wrong or None) of each check."""
    results = []
    with servers(program, folder, packages) as serve:
        for of in ("open", "small"):
            mine = [(name, function) for name, kind, function in CHECKS if kind == of and (only in (None, name))]
            if not mine:
                continue
            with serve(of) as server:
                for name, function in mine:
                    began, problem = time.monotonic(), None
                    try:
                        function(server)
                    except Exception as wrong:  # whatever it is, the other checks say their own
                        line = traceback.extract_tb(wrong.__traceback__)[1].lineno
                        problem = f"line {line}: {type(wrong).__name__}: {wrong}"
                    results.append((name, time.monotonic() - began, problem))
            if server.process.returncode != 0:
                results.append((f"the_{of}_server_ends_well", 0.0, f"exit code {server.process.returncode}"))
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("packages", type=pathlib.Path)
    parser.add_argument("--only", help="this check alone")
    parser.add_argument("--keep", action="store_true", help="leave the folder in which the model was trained")
    options = parser.parse_args()
    packages = options.packages.resolve()
    subprocess.run([ROOT / "tools/oracles/install", "openai", packages], check=True)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="systole-client-"))
    try:
        return report(run_checks(str(options.program.resolve()), folder, packages, options.only))
    finally:
        if options.keep:
            print(f"kept: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
