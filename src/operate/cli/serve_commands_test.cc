// `systole serve` as its users meet it: a trained run behind HTTP, from requests to its end.

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "operate/cli/testing/serve_command.h"

namespace systole::cli {
namespace {

Node logprobs_at(const Node& node) { return *node.find("choices")->items()[0].find("logprobs"); }

TEST_F(ServeCommand, weights_in_int8_answer_as_generate_does_in_less_memory) {
  const auto generate = [](const char* weights) {
    const Captured got = systole_->run({"generate", "tiny-1", "--backend", "reference", "--prompt", "word",
                                        "--temperature", "0", "--tokens", "12", "--weights", weights, "--json"});
    EXPECT_EQ(got.exit.code, 0) << got.err;
    return parse_json(got.out, "stdout").value();
  };
  const Node expected = generate("int8");
  EXPECT_EQ(expected.find("weights")->text(), "int8");
  EXPECT_EQ(generate("stored").find("weights")->text(), "stored");
  Server server(*systole_, {"--weights", "int8"});
  EXPECT_EQ(text_at(json_of(server.complete(R"(, "max_tokens": 12)"))), expected.find("text")->text());
  EXPECT_NE(text_of(systole_->folder() / "serve.out").find("; weights in int8: "), std::string::npos);
  EXPECT_TRUE(server.stop().ok()) << server.err();

  const Captured wrong = systole_->run({"serve", "tiny-1", "--weights", "int2"});
  EXPECT_EQ(wrong.exit.code, 2);
  EXPECT_NE(wrong.err.find("--weights"), std::string::npos) << wrong.err;
}

TEST_F(ServeCommand, keys_and_values_in_bf16_give_the_same_answer_in_company) {
  Server server(*systole_, {"--cache-type", "bf16", "--slots", "2"});
  EXPECT_NE(text_of(systole_->folder() / "serve.out").find(" for keys and values in bf16; "), std::string::npos);
  const std::string alone = text_at(json_of(server.complete(R"(, "max_tokens": 40)")));
  std::string other;
  std::thread beside([&, complete = server.another_client()] {
    other = text_at(json_of(complete(R"({"model": "tiny-1", "prompt": "word", "temperature": 0, "max_tokens": 40})")));
  });
  const std::string own = text_at(json_of(server.complete(R"(, "max_tokens": 40)")));
  beside.join();
  EXPECT_EQ(own, alone);
  EXPECT_EQ(other, alone);
  EXPECT_TRUE(server.stop().ok()) << server.err();

  const Captured wrong = systole_->run({"serve", "tiny-1", "--cache-type", "f16"});
  EXPECT_EQ(wrong.exit.code, 2);
  EXPECT_NE(wrong.err.find("--cache-type"), std::string::npos) << wrong.err;
}

// One answer is drawn as the model says; the other is forced to repeat itself, so that every draft is right.
TEST_F(ServeCommand, speculation_changes_no_answer_and_is_counted) {
  const char* const asked[] = {R"(, "max_tokens": 40)", R"(, "max_tokens": 40, "logit_bias": {"280": 100})"};
  std::vector<std::string> expected;
  {
    Server server(*systole_);
    for (const char* more : asked) expected.push_back(text_at(json_of(server.complete(more))));
    EXPECT_EQ(server.metric("vllm:spec_decode_num_draft_tokens_total"), "0");
    EXPECT_TRUE(server.stop().ok()) << server.err();
  }
  Server server(*systole_, {"--speculate", "ngram:3"});
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(text_at(json_of(server.complete(asked[i]))), expected[i]) << i;
  // Counted when the step has ended, which may be after its answer was sent.
  const auto accepted = [&] { return std::stoi(server.metric("vllm:spec_decode_num_accepted_tokens_total")); };
  for (int i = 0; i < 200 && accepted() < 25; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_GE(accepted(), 25);
  EXPECT_GE(std::stoi(server.metric("vllm:spec_decode_num_draft_tokens_total")), accepted());
  EXPECT_TRUE(server.stop().ok()) << server.err();
}

TEST_F(ServeCommand, speculation_generates_the_same_text_and_is_refused_by_name) {
  const auto run = [](const char* command, std::vector<std::string> more) {
    more.insert(more.begin(), {command, "tiny-1"});
    return systole_->run(more);
  };
  const std::vector<std::string> text{"--backend", "reference", "--prompt", "word", "--tokens", "30", "--seed", "5"};
  std::vector<std::string> speculating = text;
  speculating.insert(speculating.end(), {"--speculate", "ngram"});
  const Captured plain = run("generate", text), drafted = run("generate", speculating);
  EXPECT_EQ(plain.exit.code, 0) << plain.err;
  EXPECT_EQ(drafted.exit.code, 0) << drafted.err;
  EXPECT_EQ(drafted.out, plain.out);
  for (const char* wrong : {"ngram:0", "ngram:", "ngram:32", "ngram:3x", "model", "model:", "model::3",
                            "model:tiny-1:0", "model:tiny-1:32"}) {
    const Captured got = run("serve", {"--backend", "reference", "--speculate", wrong});
    EXPECT_EQ(got.exit.code, 2) << wrong;
    EXPECT_NE(got.err.find(fmt::format("'{}' is neither ngram nor ngram:K", wrong)), std::string::npos) << got.err;
    EXPECT_NE(got.err.find("hint: --speculate ngram:7"), std::string::npos) << got.err;
  }
  for (const char* command : {"serve", "generate"}) {
    const Captured got = run(command, {"--device", "xla-cpu", "--speculate", "ngram"});
    EXPECT_EQ(got.exit.code, 3) << command;
    EXPECT_NE(got.err.find("--speculate: on xla-cpu the bits of an answer"), std::string::npos) << got.err;
  }
}

TEST_F(ServeCommand, a_model_drafts_and_changes_no_answer) {
  const char* const asked = R"(, "max_tokens": 40, "min_tokens": 40)";
  std::string expected;
  {
    Server server(*systole_);
    expected = text_at(json_of(server.complete(asked)));
    EXPECT_TRUE(server.stop().ok()) << server.err();
  }
  Server server(*systole_, {"--speculate", "model:tiny-1:3"});
  EXPECT_NE(text_of(systole_->folder() / "serve.out").find(" for the model that drafts; loaded in "),
            std::string::npos);
  EXPECT_EQ(text_at(json_of(server.complete(asked))), expected);
  // As above. Each step has three drafts, so that ten steps are the fewest.
  const auto drafted = [&] { return std::stoi(server.metric("vllm:spec_decode_num_draft_tokens_total")); };
  for (int i = 0; i < 200 && drafted() < 25; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_GE(drafted(), 25);
  EXPECT_TRUE(server.stop().ok()) << server.err();
}

TEST_F(ServeCommand, a_model_that_cannot_draft_is_refused_by_name) {
  const std::string golden = SYSTOLE_SOURCE_DIR "/src/execute/weights/golden/";
  const auto generate = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"generate", golden + "gpt2", "--backend", "reference", "--prompt", "All", "--tokens",
                               "12", "--temperature", "0"});
    return systole_->run(more);
  };
  const Captured plain = generate({}), drafted = generate({"--speculate", "model:" + golden + "gpt2"});
  EXPECT_EQ(drafted.exit.code, 0) << drafted.err;
  EXPECT_EQ(drafted.out, plain.out);
  const Captured other = generate({"--speculate", "model:" + golden + "llama:3"});
  EXPECT_EQ(other.exit.code, 2) << other.err;
  EXPECT_NE(other.err.find(fmt::format("--speculate: '{0}llama' cannot draft for '{0}gpt2': token ", golden)),
            std::string::npos)
      << other.err;
  EXPECT_NE(other.err.find("hint: draft with a smaller model"), std::string::npos) << other.err;
  const Captured nowhere = systole_->run({"serve", "tiny-1", "--backend", "reference", "--speculate", "model:nowhere"});
  EXPECT_EQ(nowhere.exit.code, 2) << nowhere.err;
  EXPECT_NE(nowhere.err.find("--speculate: "), std::string::npos) << nowhere.err;
  EXPECT_NE(nowhere.err.find("nowhere"), std::string::npos) << nowhere.err;
}

TEST_F(ServeCommand, a_packed_folder_answers_as_its_source_in_int8) {
  const std::string model = SYSTOLE_SOURCE_DIR "/src/execute/weights/golden/gpt2";
  const Captured made =
      systole_->run({"quantize", model, "--out", "packed", "--limit", "50", "--backend", "reference"});
  ASSERT_EQ(made.exit.code, 0) << made.err;
  const auto answer = [&](const std::string& served, std::vector<std::string> more) {
    more.insert(more.end(), {"--name", "tiny-1"});
    Server server(*systole_, more, served);
    const HttpReply reply = server.complete(R"(, "max_tokens": 12, "min_tokens": 12, "logprobs": 2)");
    EXPECT_TRUE(server.stop().ok()) << server.err();
    EXPECT_NE(text_of(systole_->folder() / "serve.out").find("; weights in int8: "), std::string::npos);
    return to_json(*json_of(reply).find("choices"));
  };
  EXPECT_EQ(answer("packed", {}), answer(model, {"--weights", "int8"}));
}

TEST_F(ServeCommand, completes_as_generate_does_whole_and_as_a_stream) {
  const Captured generated = systole_->run({"generate", "tiny-1", "--backend", "reference", "--prompt", "word",
                                            "--temperature", "0", "--tokens", "12", "--json"});
  ASSERT_EQ(generated.exit.code, 0) << generated.err;
  const Node expected = parse_json(generated.out, "stdout").value();
  Server server(*systole_);

  const HttpReply whole = server.complete(R"(, "max_tokens": 12)");
  ASSERT_EQ(whole.status, 200) << whole.body;
  const Node node = json_of(whole);
  EXPECT_EQ(text_at(node), expected.find("text")->text());
  EXPECT_EQ(node.find("object")->text(), "text_completion");
  EXPECT_EQ(node.find("model")->text(), "tiny-1");
  const Node& usage = *node.find("usage");
  EXPECT_EQ(usage.find("prompt_tokens")->text(), expected.find("prompt_tokens")->text());
  EXPECT_EQ(usage.find("completion_tokens")->text(), expected.find("tokens")->text());

  std::string streamed, all;
  bool ended = false;
  const HttpReply stream =
      server.send("POST", "/v1/completions",
                  R"({"model": "tiny-1", "prompt": "word", "temperature": 0, "max_tokens": 12, "stream": true,
          "stream_options": {"include_usage": true}})",
                  [&](std::string_view piece) {
                    all += piece;
                    return true;
                  });
  EXPECT_EQ(stream.status, 200);
  ASSERT_NE(stream.header("content-type"), nullptr);
  EXPECT_TRUE(stream.header("content-type")->starts_with("text/event-stream"));
  std::string usage_of_stream;
  for (std::size_t begin = 0; begin < all.size();) {
    const std::size_t end = all.find("\n\n", begin);
    ASSERT_NE(end, all.npos) << all.substr(begin);
    const std::string event = all.substr(begin, end - begin);
    begin = end + 2;
    ASSERT_TRUE(event.starts_with("data: ")) << event;
    EXPECT_FALSE(ended) << "[DONE] is the last";
    ended = event == "data: [DONE]";
    if (ended) continue;
    const Node chunk = parse_json(event.substr(6), "event").value();
    for (const Node& choice : chunk.find("choices")->items()) streamed += choice.find("text")->text();
    if (!chunk.find("usage")->is_null()) usage_of_stream = to_json(*chunk.find("usage"));
  }
  EXPECT_TRUE(ended);
  EXPECT_EQ(streamed, expected.find("text")->text());
  EXPECT_EQ(usage_of_stream, to_json(usage));

  EXPECT_TRUE(server.stop().ok());
  EXPECT_NE(server.err().find("served 2 answers"), std::string::npos) << server.err();
}

TEST_F(ServeCommand, several_prompts_and_answers_stop_strings_and_echo) {
  Server server(*systole_, {"--slots", "2"});
  const std::string greedy = text_at(json_of(server.complete(R"(, "max_tokens": 12)")));
  const Node many = json_of(server.send(
      "POST", "/v1/completions",
      R"({"model": "tiny-1", "prompt": ["word", "list"], "n": 2, "seed": 5, "max_tokens": 6, "temperature": 1.5})"));
  ASSERT_EQ(many.find("choices")->items().size(), 4U);
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_EQ(many.find("choices")->items()[i].find("index")->text(), std::to_string(i));
  const Node again = json_of(server.send(
      "POST", "/v1/completions",
      R"({"model": "tiny-1", "prompt": ["word", "list"], "n": 2, "seed": 5, "max_tokens": 6, "temperature": 1.5})"));
  EXPECT_EQ(to_json(*many.find("choices")), to_json(*again.find("choices"))) << "a seed gives the same answers";
  EXPECT_EQ(text_at(json_of(server.complete(R"(, "max_tokens": 12, "echo": true)"))), "word" + greedy);
  ASSERT_GE(greedy.size(), 6U);
  const std::string stop = greedy.substr(3, 2);
  Node request =
      Node::map({{"model", "tiny-1"}, {"prompt", "word"}, {"temperature", 0}, {"max_tokens", 12}, {"stop", stop}});
  const Node stopped = json_of(server.send("POST", "/v1/completions", to_json(request)));
  EXPECT_EQ(text_at(stopped), greedy.substr(0, greedy.find(stop)));
  EXPECT_EQ(stopped.find("choices")->items()[0].find("finish_reason")->text(), "stop");
  EXPECT_TRUE(server.stop().ok());
}

TEST_F(ServeCommand, logprobs_of_greedy_tokens_are_the_largest_whole_and_as_a_stream) {
  Server server(*systole_);
  const std::string more = R"(, "max_tokens": 6, "min_tokens": 6, "logprobs": 5)";
  const HttpReply whole = server.complete(more);
  ASSERT_EQ(whole.status, 200) << whole.body;
  const Node logprobs = logprobs_at(json_of(whole));
  const std::span<const Node> tokens = logprobs.find("tokens")->items();
  const std::span<const Node> chosen = logprobs.find("token_logprobs")->items();
  const std::span<const Node> tops = logprobs.find("top_logprobs")->items();
  ASSERT_EQ(tokens.size(), 6U) << "min_tokens keeps the end of the document away";
  ASSERT_EQ(chosen.size(), 6U);
  ASSERT_EQ(tops.size(), 6U);
  EXPECT_EQ(logprobs.find("text_offset")->items().size(), 6U);
  EXPECT_EQ(logprobs.find("text_offset")->items()[0].text(), "0");
  for (std::size_t i = 0; i < 6; ++i) {
    const double logprob = chosen[i].as_double().value();
    EXPECT_LT(logprob, 0);
    EXPECT_NE(tops[i].find(tokens[i].text()), nullptr) << whole.body;
    for (const Node::Entry& top : tops[i].entries()) {
      EXPECT_TRUE(top.value.as_double().value() <= logprob || top.key.starts_with("token_id:"))
          << "only a token that is not drawn may be likelier: " << whole.body;
    }
  }
  EXPECT_TRUE(json_of(server.complete(R"(, "max_tokens": 2)")).find("choices")->items()[0].find("logprobs")->is_null());

  std::string all;
  server.send("POST", "/v1/completions",
              R"({"model": "tiny-1", "prompt": "word", "temperature": 0, "stream": true)" + more + "}",
              [&](std::string_view piece) {
                all += piece;
                return true;
              });
  Node streamed = Node::map();
  for (const char* part : {"tokens", "token_logprobs", "top_logprobs", "text_offset"})
    streamed.set(part, Node::sequence());
  for (std::size_t begin = 0, end = 0; (end = all.find("\n\n", begin)) != all.npos; begin = end + 2) {
    const std::string event = all.substr(begin, end - begin);
    if (event == "data: [DONE]") continue;
    const Node piece = logprobs_at(parse_json(event.substr(6), "event").value());
    for (const Node::Entry& part : piece.entries()) {
      Node list = *streamed.find(part.key);
      for (const Node& item : part.value.items()) list.push(item);
      streamed.set(part.key, std::move(list));
    }
  }
  EXPECT_EQ(to_json(streamed), to_json(logprobs));
  EXPECT_TRUE(server.stop().ok());
}

TEST_F(ServeCommand, biases_penalties_and_stop_tokens) {
  Server server(*systole_);
  const Node prompt = json_of(server.send("POST", "/tokenize", R"({"prompt": "word"})"));
  const std::string token = prompt.find("tokens")->items().back().text();
  const auto spelled = [&](int count) {
    Node list = Node::sequence();
    for (int i = 0; i < count; ++i) list.push(Node(NodeKind::number, token));
    return json_of(server.send("POST", "/detokenize", to_json(Node::map({{"tokens", list}})))).text_at("prompt");
  };
  const auto ask = [&](int bias, const std::string& more) {
    return json_of(
        server.complete(fmt::format(R"(, "logit_bias": {{"{}": {}}}, "max_tokens": 3{})", token, bias, more)));
  };
  EXPECT_EQ(text_at(ask(100, "")), spelled(3)) << "forced";
  EXPECT_FALSE(text_at(ask(-100, R"(, "min_tokens": 1)")).starts_with(spelled(1))) << "banned";

  // The logits of a model after two steps are within a small fraction of 3 from each other.
  EXPECT_EQ(text_at(ask(3, "")), spelled(3));
  const Node penalized =
      logprobs_at(ask(3, R"(, "presence_penalty": 2, "frequency_penalty": 2, "min_tokens": 2, "logprobs": 0)"));
  const std::span<const Node> tokens = penalized.find("tokens")->items();
  ASSERT_GE(tokens.size(), 2U);
  EXPECT_EQ(tokens[0].text(), spelled(1)) << "the prompt does not count";
  EXPECT_NE(tokens[1].text(), spelled(1)) << "3 - 2 - 2 is less than 0";
  EXPECT_NE(text_at(ask(3, R"(, "repetition_penalty": 100)")), spelled(3)) << "3 / 100 is not the largest any more";

  const auto ended = [](const Node& node, const char* reason, const char* count) {
    EXPECT_EQ(node.find("choices")->items()[0].text_at("finish_reason"), reason);
    EXPECT_EQ(node.find("usage")->text_at("completion_tokens"), count);
  };
  const std::string stop = fmt::format(R"(, "stop_token_ids": [{}])", token);
  ended(ask(100, ""), "length", "3");
  ended(ask(100, stop), "stop", "0");
  ended(ask(100, stop + R"(, "min_tokens": 2)"), "stop", "2");
  const std::string eos = R"(, "max_tokens": 3, "logit_bias": {"2": 100})";  // of tokenizers that are trained here
  ended(json_of(server.complete(eos)), "stop", "0");
  ended(json_of(server.complete(eos + R"(, "ignore_eos": true)")), "length", "3");
  EXPECT_TRUE(server.stop().ok());
}

TEST_F(ServeCommand, answers_conform_to_a_schema_or_a_pattern) {
  Server server(*systole_);
  const std::string schema =
      R"({"type": "object", "properties": {"n": {"type": "integer", "minimum": 1, "maximum": 99}}, "required": ["n"]})";
  const std::string form = R"({"type": "json_schema", "json_schema": {"name": "count", "schema": )" + schema + "}}";
  for (const std::string& asked : {R"("response_format": )" + form, R"("structured_outputs": {"json": )" + schema + "}",
                                   R"("guided_json": )" + schema}) {
    const HttpReply reply = server.complete(R"(, "max_tokens": 100, )" + asked);
    ASSERT_EQ(reply.status, 200) << asked << reply.body;
    const Node node = json_of(reply);
    const Node value = parse_json(text_at(node), "text").value();
    EXPECT_EQ(value.keys(), std::vector<std::string>{"n"}) << reply.body;
    EXPECT_TRUE(value.find("n")->as_int(1, 99).ok()) << reply.body;
    EXPECT_EQ(node.find("choices")->items()[0].text_at("finish_reason"), "stop");
  }
  EXPECT_EQ(text_at(json_of(server.complete(R"(, "guided_regex": "x{3}")"))), "xxx");
  const HttpReply refused =
      server.complete(R"(, "response_format": {"type": "json_schema", "json_schema": {"schema": {"not": {}}}})");
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(json_of(refused).find("error")->text_at("param"), "response_format") << refused.body;
  EXPECT_NE(refused.body.find("'not' is not supported"), std::string::npos) << refused.body;
  EXPECT_TRUE(server.stop().ok());
}

constexpr const char* kChatTemplate =
    "{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}";

std::string said_in(const Node& node) {
  return node.find("choices")->items()[0].find("message")->find("content")->text();
}

TEST_F(ServeCommand, chats_by_the_template_of_a_published_model) {
  const std::filesystem::path model = systole_->folder() / "chatty";
  std::filesystem::copy(SYSTOLE_SOURCE_DIR "/src/execute/weights/golden/llama", model);
  std::filesystem::permissions(model, std::filesystem::perms::owner_all);
  systole_->write("chatty/tokenizer_config.json", to_json(Node::map({{"chat_template", kChatTemplate}})));
  std::string text;
  {
    Server server(*systole_, {}, "chatty");
    const auto chat = [&](const std::string& content, const std::string& more) {
      const Node message = Node::map({{"role", "user"}, {"content", content}});
      return server.send("POST", "/v1/chat/completions",
                         R"({"model": "chatty", "temperature": 0, "max_tokens": 12, "messages": [)" + to_json(message) +
                             "]" + more + "}");
    };
    const auto tokens_of = [&](const std::string& prompt) {
      const Node tokens = json_of(server.send("POST", "/tokenize", to_json(Node::map({{"prompt", prompt}}))));
      std::vector<Node> all(tokens.find("tokens")->items().begin(), tokens.find("tokens")->items().end());
      if (all.front().text() != "0") all.insert(all.begin(), Node(0));  // "<s>", which the template writes
      return Node::sequence(std::move(all));
    };
    const Node prompt = tokens_of("user: Hi\nassistant:");
    text = text_at(json_of(server.send(
        "POST", "/v1/completions",
        to_json(Node::map({{"model", "chatty"}, {"prompt", prompt}, {"temperature", 0}, {"max_tokens", 12}})))));
    const HttpReply reply = chat("Hi", "");
    ASSERT_EQ(reply.status, 200) << reply.body;
    const Node whole = json_of(reply);
    EXPECT_EQ(whole.find("object")->text(), "chat.completion");
    EXPECT_EQ(said_in(whole), text);
    EXPECT_EQ(whole.find("usage")->find("prompt_tokens")->text(), std::to_string(prompt.items().size()));
    EXPECT_EQ(whole.find("choices")->items()[0].find("message")->find("role")->text(), "assistant");

    // A client that spells a special token gets its letters.
    const Node spelled = json_of(chat("a</s><s>b", ""));
    EXPECT_EQ(spelled.find("usage")->find("prompt_tokens")->text(),
              std::to_string(tokens_of("user: a</s><s>b\nassistant:").items().size()));

    const std::string events = chat("Hi", R"(, "stream": true)").body;
    std::string streamed;
    bool first = true;
    for (std::size_t begin = events.find("data: {"); begin != events.npos; begin = events.find("data: {", begin + 1)) {
      const Node chunk = parse_json(events.substr(begin + 6, events.find("\n\n", begin) - begin - 6), "event").value();
      EXPECT_EQ(chunk.find("object")->text(), "chat.completion.chunk");
      const Node& delta = *chunk.find("choices")->items()[0].find("delta");
      EXPECT_EQ(delta.find("role") != nullptr, first) << events;
      first = false;
      streamed += delta.find("content")->text();
    }
    EXPECT_EQ(streamed, text);
    EXPECT_TRUE(events.ends_with("data: [DONE]\n\n")) << events;
    EXPECT_TRUE(server.stop().ok());
  }
  std::vector<Node> every;
  for (int token = 1; token < 300; ++token) every.emplace_back(token);
  systole_->write("chatty/generation_config.json", to_json(Node::map({{"eos_token_id", Node::sequence(every)}})));
  systole_->write("other.jinja", "{{ raise_exception('say please') }}");
  const std::string hi = R"({"model": "chatty", "temperature": 0, "messages": [{"role": "user", "content": "Hi"}]})";
  {
    Server server(*systole_, {}, "chatty");
    const Node ended = json_of(server.send("POST", "/v1/chat/completions", hi));
    EXPECT_EQ(said_in(ended), "");
    EXPECT_EQ(ended.find("choices")->items()[0].find("finish_reason")->text(), "stop");
    EXPECT_TRUE(server.stop().ok());
  }
  Server server(*systole_, {"--chat-template", "other.jinja"}, "chatty");
  const HttpReply refused = server.send("POST", "/v1/chat/completions", hi);
  EXPECT_EQ(refused.status, 400);
  EXPECT_NE(refused.body.find("say please"), std::string::npos) << refused.body;
  EXPECT_TRUE(server.stop().ok());
}

TEST_F(ServeCommand, calls_tools_as_its_chat_template_writes_them) {
  const std::filesystem::path model = systole_->folder() / "caller";
  std::filesystem::copy(SYSTOLE_SOURCE_DIR "/src/execute/weights/golden/llama", model);
  std::filesystem::permissions(model, std::filesystem::perms::owner_all);
  systole_->write("caller/tokenizer_config.json",
                  to_json(Node::map({{"chat_template", "{{ messages[0].content }}{# <tool_call> #}"}})));
  Server server(*systole_, {}, "caller");
  // The context has no room for indents, which this model may like.
  Node biases = Node::map();
  for (const char* space : {" ", "\n"}) {
    const Node tokens = json_of(server.send("POST", "/tokenize", to_json(Node::map({{"prompt", space}}))));
    biases.set(tokens.find("tokens")->items().back().text(), -100);
  }
  const std::string request = R"({"model": "caller", "temperature": 0, "messages": [{"role": "user", "content": "Hi"}],
      "tools": [{"type": "function", "function": {"name": "look", "parameters":
        {"type": "object", "properties": {"city": {"enum": ["Bern", "Rome"]}}, "required": ["city"]}}}],
      "logit_bias": )" + to_json(biases);
  const auto chat = [&](const std::string& more) {
    return server.send("POST", "/v1/chat/completions", request + more + "}");
  };
  const HttpReply reply = chat(R"(, "tool_choice": {"type": "function", "function": {"name": "look"}})");
  ASSERT_EQ(reply.status, 200) << reply.body;
  const Node choice = json_of(reply).find("choices")->items()[0];
  EXPECT_EQ(choice.text_at("finish_reason"), "tool_calls") << reply.body;
  const Node* calls = choice.find("message")->find("tool_calls");
  ASSERT_NE(calls, nullptr) << reply.body;
  ASSERT_EQ(calls->items().size(), 1U) << reply.body;
  EXPECT_EQ(calls->items()[0].find("function")->text_at("name"), "look");
  const std::string arguments = calls->items()[0].find("function")->text_at("arguments");
  EXPECT_TRUE(arguments == R"({"city":"Bern"})" || arguments == R"({"city":"Rome"})") << arguments;
  EXPECT_EQ(
      json_of(chat(R"(, "tool_choice": "auto", "max_tokens": 3)")).find("choices")->items()[0].text_at("finish_reason"),
      "length");
  const HttpReply refused = chat(R"(, "tool_choice": {"type": "function", "function": {"name": "other"}})");
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(json_of(refused).find("error")->text_at("param"), "tool_choice") << refused.body;
  EXPECT_TRUE(server.stop().ok());
}

TEST_F(ServeCommand, a_model_without_a_chat_template_says_so) {
  Server server(*systole_);
  const HttpReply reply = server.send("POST", "/v1/chat/completions",
                                      R"({"model": "tiny-1", "messages": [{"role": "user", "content": "Hi"}]})");
  EXPECT_EQ(reply.status, 400);
  EXPECT_NE(reply.body.find("no chat template"), std::string::npos) << reply.body;
  EXPECT_NE(reply.body.find("--chat-template"), std::string::npos) << reply.body;
  EXPECT_TRUE(server.stop().ok());
  systole_->write("wrong.jinja", "{% frob %}");
  const Captured wrong =
      systole_->run({"serve", "tiny-1", "--backend", "reference", "--port", "0", "--chat-template", "wrong.jinja"});
  EXPECT_EQ(wrong.exit.code, 3) << wrong.err;
  EXPECT_NE(wrong.err.find("frob"), std::string::npos) << wrong.err;
}

TEST_F(ServeCommand, a_registered_model_is_served_under_its_name) {
  const Captured made = systole_->run({"models", "register", "tiny-1", "--name", "answers"});
  ASSERT_EQ(made.exit.code, 0) << made.err;
  Server server(*systole_, {}, "models:answers:1");
  EXPECT_EQ(json_of(server.send("GET", "/v1/models")).find("data")->items()[0].find("id")->text(), "answers");
  EXPECT_NE(server.err().find("models:answers:1 is answers:1, stage none: step 2 of runs/tiny-1"), std::string::npos)
      << server.err();
  const std::string out = text_of(systole_->folder() / "serve.out");
  EXPECT_NE(out.find("; loaded in "), std::string::npos) << out;
  EXPECT_NE(out.find(" on reference\n"), std::string::npos) << out;
  EXPECT_TRUE(server.stop().ok()) << server.err();
}

TEST_F(ServeCommand, the_phases_of_its_start_sum_to_the_time_until_it_is_ready) {
  const auto began = std::chrono::steady_clock::now();
  Server server(*systole_, {"--json"});
  const std::chrono::duration<double> ready = std::chrono::steady_clock::now() - began;
  EXPECT_TRUE(server.stop().ok()) << server.err();
  const Node node = parse_json(text_of(systole_->folder() / "serve.out"), "serve.out").value();
  const Node& start = *node.find("start");
  ASSERT_EQ(start.keys(), (std::vector<std::string>{"process_s", "read_s", "device_s", "compile_s", "weights_s",
                                                    "listen_s", "total_s"}));
  double sum = 0;
  for (const Node::Entry& phase : start.entries().first(6)) {
    EXPECT_GE(phase.value.as_double().value(), 0) << phase.key;
    sum += phase.value.as_double().value();
  }
  EXPECT_EQ(sum, start.find("total_s")->as_double().value());
  EXPECT_GE(sum, node.find("load_s")->as_double().value());
  EXPECT_LE(sum, ready.count() + 0.006) << "the kernel's ticks tell when the process began";
}

TEST_F(ServeCommand, its_cold_start_is_measured_from_outside) {
  const Captured said = systole_->shell("python3 " SYSTOLE_SOURCE_DIR
                                        "/bench/coldstart.py \"$SYSTOLE\" tiny-1 --options '--backend reference' "
                                        "--prompt word --rounds 1 --within 10");  // a busy machine
  EXPECT_EQ(said.exit.code, 0) << said.out << said.err;
  EXPECT_NE(said.out.find("files in memory: systole: first token after "), std::string::npos) << said.out;
  EXPECT_NE(said.out.find("  phases, ms: process "), std::string::npos) << said.out;
}

TEST_F(ServeCommand, models_tokens_health_and_metrics) {
  Server server(*systole_, {"--name", "mine"});
  EXPECT_EQ(json_of(server.send("GET", "/v1/models")).find("data")->items()[0].find("id")->text(), "mine");
  EXPECT_EQ(json_of(server.send("GET", "/v1/models/mine")).find("max_model_len")->text(), "256");
  EXPECT_EQ(server.send("GET", "/v1/models/yours").status, 404);
  const Node tokens = json_of(server.send("POST", "/tokenize", R"({"prompt": "word of a list"})"));
  EXPECT_EQ(tokens.find("count")->text(), std::to_string(tokens.find("tokens")->items().size()));
  const Node text =
      json_of(server.send("POST", "/detokenize", to_json(Node::map({{"tokens", *tokens.find("tokens")}}))));
  EXPECT_EQ(text.find("prompt")->text(), "word of a list");
  EXPECT_EQ(server.send("GET", "/health/live").status, 200);
  EXPECT_EQ(server.send("GET", "/health/ready").status, 200);
  EXPECT_EQ(server.metric("vllm:num_requests_running"), "0");
  EXPECT_EQ(server.send("GET", "/nothing").status, 404);
  EXPECT_EQ(server.send("GET", "/v1/completions").status, 405);
  EXPECT_TRUE(server.stop().ok());
}

TEST_F(ServeCommand, pieces_of_prompts_are_powers_of_two) {
  for (const char* tokens : {"3", "48", "1024"}) {
    const Captured odd =
        systole_->run({"serve", "tiny-1", "--backend", "reference", "--port", "0", "--prefill-tokens", tokens});
    EXPECT_EQ(odd.exit.code, 2) << odd.err;
    EXPECT_NE(odd.err.find(fmt::format("--prefill-tokens: {} is no power of two from 16 to 512", tokens)),
              std::string::npos)
        << odd.err;
    EXPECT_NE(odd.err.find("hint: --prefill-tokens 64, or leave it out"), std::string::npos) << odd.err;
  }
  for (const char* time : {"0", "100", "-1s", "soon"}) {
    const Captured odd = systole_->run({"serve", "tiny-1", "--backend", "reference", "--port", "0", "--tpot", time});
    EXPECT_EQ(odd.exit.code, 2) << odd.err;
    EXPECT_NE(odd.err.find(fmt::format("--tpot: '{}' is no time above 0", time)), std::string::npos) << odd.err;
    EXPECT_NE(odd.err.find("hint: --tpot 100ms"), std::string::npos) << odd.err;
  }
}

// Pages for one sequence: two at once take turns, and each gets its own answer.
TEST_F(ServeCommand, with_few_pages_answers_stay_the_same) {
  const Captured few =
      systole_->run({"serve", "tiny-1", "--backend", "reference", "--port", "0", "--cache-tokens", "9"});
  EXPECT_EQ(few.exit.code, 2) << few.err;
  EXPECT_NE(few.err.find("--cache-tokens: 9 for sequences of up to 256 tokens"), std::string::npos) << few.err;
  EXPECT_NE(few.err.find("--cache-tokens 256 or more, or --context 9"), std::string::npos) << few.err;
  const Captured many = systole_->run(
      {"serve", "tiny-1", "--backend", "reference", "--port", "0", "--cache-tokens", "9223372036854775807"});
  EXPECT_EQ(many.exit.code, 2) << many.err;
  EXPECT_NE(many.err.find("--cache-tokens: 9223372036854775807, at most 2147483648"), std::string::npos) << many.err;
  std::string alone;
  {
    Server server(*systole_);
    alone = text_at(json_of(server.complete(R"(, "max_tokens": 60)")));
    EXPECT_TRUE(server.stop().ok());
  }
  Server server(*systole_, {"--context", "80", "--slots", "2", "--cache-tokens", "80", "--prefill-tokens", "16"});
  std::string other;
  std::thread beside([&, complete = server.another_client()] {
    other = text_at(json_of(complete(R"({"model": "tiny-1", "prompt": "word", "temperature": 0, "max_tokens": 60})")));
  });
  const std::string own = text_at(json_of(server.complete(R"(, "max_tokens": 60)")));
  beside.join();
  EXPECT_EQ(own, alone);
  EXPECT_EQ(other, alone);
  EXPECT_EQ(server.metric("systole:prefill_piece_tokens"), "16");
  EXPECT_TRUE(server.stop().ok()) << server.err();
}

TEST_F(ServeCommand, wrong_requests_are_answered_with_what_is_wrong_and_serving_goes_on) {
  Server server(*systole_);
  const auto refused = [&](const std::string& body, int status, const std::string& param) {
    const HttpReply reply = server.send("POST", "/v1/completions", body);
    EXPECT_EQ(reply.status, status) << body << reply.body;
    const Node node = json_of(reply);
    const Node& error = *node.find("error");
    EXPECT_EQ(error.find("param")->text(), param) << reply.body;
    EXPECT_FALSE(error.find("message")->text().empty());
  };
  refused("{", 400, "");
  refused(R"({"model": "other", "prompt": "x"})", 404, "model");
  refused(R"({"model": "tiny-1"})", 400, "prompt");
  refused(R"({"model": "tiny-1", "prompt": "x", "logprobs": 6})", 400, "logprobs");
  refused(R"({"model": "tiny-1", "prompt": "x", "max_tokens": 0})", 400, "max_tokens");
  refused(R"({"model": "tiny-1", "prompt": "x", "logit_bias": {"99999": 1}})", 400, "logit_bias");
  refused(R"({"model": "tiny-1", "prompt": "x", "presence_penalty": 3})", 400, "presence_penalty");
  refused(R"({"model": "tiny-1", "prompt": [99999]})", 400, "");
  refused(to_json(Node::map({{"model", "tiny-1"}, {"prompt", std::string(4000, 'x')}})), 400, "");
  EXPECT_EQ(server.complete(R"(, "max_tokens": 3)").status, 200);
  EXPECT_TRUE(server.stop().ok());
}

TEST_F(ServeCommand, a_client_that_leaves_frees_its_slot) {
  Server server(*systole_, {"--slots", "1"});
  std::string first;
  // Sixty answers one after the other: the client leaves with the first piece.
  const HttpReply left =
      server.send("POST", "/v1/completions",
                  R"({"model": "tiny-1", "prompt": "word", "n": 60, "max_tokens": 250, "min_tokens": 250,
                      "stream": true})",
                  [&](std::string_view piece) {
                    first = piece;
                    return false;
                  });
  EXPECT_TRUE(left.ended);
  EXPECT_FALSE(first.empty());
  const auto cancelled = [&] { return std::stoi(server.metric("systole:cancelled_total")); };
  for (int i = 0; i < 200 && cancelled() == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_GE(cancelled(), 1);
  for (int i = 0; i < 200 && server.metric("vllm:num_requests_running") != "0"; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_LT(std::stoi(server.metric("vllm:generation_tokens_total")), 60 * 250);
  EXPECT_EQ(server.complete(R"(, "max_tokens": 3)").status, 200);
  EXPECT_TRUE(server.stop().ok());
}

// What a cluster starts is what the program takes, and what it asks of a pod is there.
TEST_F(ServeCommand, a_rendered_server_starts_and_has_what_its_cluster_asks_for) {
  systole_->write("served.yaml", R"(systole: 1
name: tiny
workload: serve
model: { family: gpt, layers: 1, width: 16, heads: 2, context: 256, vocabulary: 300 }
serve: { from: /runs/tiny-1, slots: 2, context: 64, replicas: '2:3', parameter: i8, traffic: { rate: 1 } }
image: registry.example/systole:1
claims: { /runs: runs }
resources: { threads: 1, memory: 1GiB }
)");
  const Captured rendered = systole_->run({"render", "served.yaml", "--on", "kubernetes"});
  ASSERT_EQ(rendered.exit.code, 0) << rendered.err;
  const std::string text = text_of(systole_->folder() / "rendered/kubernetes/serve.yaml");
  Node container, scaler;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find("\n---\n", begin), text.size());
    const Node object = parse_yaml(text.substr(begin, end - begin), "serve.yaml").value();
    if (object.find("kind")->text() == "Deployment")
      container = object.find("spec")->find("template")->find("spec")->find("containers")->items()[0];
    if (object.find("kind")->text() == "HorizontalPodAutoscaler") scaler = *object.find("spec");
    begin = end + 5;
  }
  ASSERT_FALSE(container.is_null());
  ASSERT_FALSE(scaler.is_null());
  systole_->write_secret("token", "secret");
  std::vector<std::string> words;
  for (const Node& word : container.find("command")->items()) words.push_back(word.text());
  ASSERT_EQ((std::vector<std::string>(words.begin(), words.begin() + 3)),
            (std::vector<std::string>{"systole", "serve", "/runs/tiny-1"}));
  words.erase(words.begin(), words.begin() + 3);
  const auto value = [&](const char* option) { return std::next(std::ranges::find(words, option)); };
  *value("--listen") = "127.0.0.1";
  *value("--token-file") = "token";
  const auto port = std::ranges::find(words, "--port");  // the server of this test takes any
  ASSERT_EQ(*std::next(port), "8000");
  words.erase(port, port + 2);
  Server server(*systole_, words);
  for (const char* probe : {"startupProbe", "readinessProbe", "livenessProbe"})
    EXPECT_EQ(server.send("GET", container.find(probe)->find("httpGet")->find("path")->text()).status, 200) << probe;
  EXPECT_EQ(server.send("GET", "/metrics").status, 401);
  const std::string metric = scaler.find("metrics")->items()[0].find("pods")->find("metric")->find("name")->text();
  const std::string metrics = server.send("GET", "/metrics", "", {}, "secret").body;
  EXPECT_NE(metrics.find("\n" + metric + "{"), std::string::npos) << metric << metrics;
  EXPECT_NE(server.send("GET", "/v1/models", "", {}, "secret").body.find("\"tiny\""), std::string::npos);
  EXPECT_TRUE(server.stop().ok()) << server.err();
}

TEST_F(ServeCommand, tokens_are_asked_for_and_other_machines_need_one) {
  systole_->write_secret("tokens", "# who may ask\nfirst\nsecond\n");
  Server server(*systole_, {"--token-file", "tokens"});
  EXPECT_EQ(server.send("GET", "/v1/models").status, 401);
  EXPECT_EQ(server.send("GET", "/v1/models", "", {}, "third").status, 401);
  EXPECT_EQ(server.send("GET", "/v1/models", "", {}, "second").status, 200);
  EXPECT_EQ(server.send("GET", "/health/live").status, 200);
  EXPECT_TRUE(server.stop().ok());

  const Captured open =
      systole_->run({"serve", "tiny-1", "--backend", "reference", "--port", "0", "--listen", "0.0.0.0"});
  EXPECT_EQ(open.exit.code, 2) << open.err;
  EXPECT_NE(open.err.find("token"), std::string::npos) << open.err;
  systole_->write("readable", "first\n");
  std::filesystem::permissions(systole_->folder() / "readable", std::filesystem::perms(0644));
  const Captured readable = systole_->run({"serve", "tiny-1", "--backend", "reference", "--token-file", "readable"});
  EXPECT_EQ(readable.exit.code, 2) << readable.err;
  const Captured absent = systole_->run({"serve", "nothing", "--backend", "reference"});
  EXPECT_EQ(absent.exit.code, 2) << absent.err;
}

}  // namespace
}  // namespace systole::cli
