#include "execute/serve/openai_requests.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

CompletionRequest read(const std::string& more) {
  return parse_completion(R"({"model": "m", "prompt": "Once")" + (more.empty() ? "" : ", " + more) + "}").value();
}
Error refused(const std::string& body) {
  const Result<CompletionRequest> request = parse_completion(body);
  return request.ok() ? error(ErrorKind::internal, "accepted: {}", body) : request.error();
}
Error refused_field(const std::string& field) { return refused(R"({"model": "m", "prompt": "Once", )" + field + "}"); }

TEST(OpenAiRequests, defaults_are_those_of_the_interface) {
  const CompletionRequest request = read("");
  EXPECT_EQ(request.n, 1);
  EXPECT_EQ(request.max_tokens, 16);
  EXPECT_EQ(request.sampling.temperature, 1);
  EXPECT_EQ(request.sampling.top_p, 1);
  EXPECT_FALSE(request.seeded || request.stream || request.with_usage || request.echo);
  EXPECT_EQ(std::get<std::string>(request.prompts.at(0)), "Once");
  EXPECT_EQ(request.sampling.min_p, 0);
  EXPECT_EQ(request.sampling.repetition_penalty, 1);
  EXPECT_FALSE(request.logprobs || request.ignore_eos);
  EXPECT_EQ(request.min_tokens, 0);
  read(R"("seed": null, "stop": null, "logprobs": null, "logit_bias": {}, "presence_penalty": 0, "suffix": null,
         "best_of": 1, "min_p": null, "repetition_penalty": 1, "min_tokens": 0, "ignore_eos": false,
         "stop_token_ids": [], "user": "u", "stream_options": null)");
}

TEST(OpenAiRequests, prompts_are_texts_or_tokens_one_or_many) {
  const auto prompts = [](const std::string& prompt) {
    return parse_completion(R"({"model": "m", "prompt": )" + prompt + "}").value().prompts;
  };
  using Prompt = CompletionRequest::Prompt;
  EXPECT_EQ(prompts(R"(["a", "b"])"), (std::vector<Prompt>{"a", "b"}));
  EXPECT_EQ(prompts("[1, 2]"), (std::vector<Prompt>{std::vector<std::int32_t>{1, 2}}));
  EXPECT_EQ(prompts("[[1], [2, 3]]"),
            (std::vector<Prompt>{std::vector<std::int32_t>{1}, std::vector<std::int32_t>{2, 3}}));
  for (const char* wrong : {"1", "[]", "{}", "true", R"([1, "a"])", "[[-1]]", "[[1.5]]", "[[3000000000]]", "[null]"})
    EXPECT_EQ(refused(std::string(R"({"model": "m", "prompt": )") + wrong + "}").key, "prompt") << wrong;
}

TEST(OpenAiRequests, options_are_read) {
  const CompletionRequest request =
      read(R"("n": 2, "max_tokens": 5, "temperature": 0.5, "top_p": 0.9, "top_k": 7, "seed": -3, "stop": ["\n", "."],
             "stream": true, "stream_options": {"include_usage": true}, "echo": true)");
  EXPECT_EQ(request.n, 2);
  EXPECT_EQ(request.max_tokens, 5);
  EXPECT_EQ(request.sampling.temperature, 0.5);
  EXPECT_EQ(request.sampling.top_p, 0.9);
  EXPECT_EQ(request.sampling.top_k, 7);
  EXPECT_EQ(request.sampling.seed, static_cast<std::uint64_t>(-3));
  EXPECT_TRUE(request.seeded && request.stream && request.with_usage && request.echo);
  EXPECT_EQ(request.stop, (std::vector<std::string>{"\n", "."}));
  EXPECT_EQ(read(R"("stop": "x")").stop, std::vector<std::string>{"x"});
}

TEST(OpenAiRequests, penalties_biases_and_ends_are_read) {
  const CompletionRequest request = read(
      R"("min_p": 0.1, "presence_penalty": -2, "frequency_penalty": 1.5, "repetition_penalty": 1.2,
         "logit_bias": {"7": -100, "0": 2.5}, "min_tokens": 3, "ignore_eos": true, "stop_token_ids": [4, 9],
         "logprobs": 0)");
  EXPECT_EQ(request.sampling.min_p, 0.1);
  EXPECT_EQ(request.sampling.presence_penalty, -2);
  EXPECT_EQ(request.sampling.frequency_penalty, 1.5);
  EXPECT_EQ(request.sampling.repetition_penalty, 1.2);
  EXPECT_EQ(request.sampling.logit_bias, (std::map<std::int32_t, double>{{0, 2.5}, {7, -100}}));
  EXPECT_EQ(request.min_tokens, 3);
  EXPECT_TRUE(request.ignore_eos);
  EXPECT_EQ(request.stop_tokens, (std::vector<std::int32_t>{4, 9}));
  EXPECT_EQ(request.logprobs, 0);
  EXPECT_EQ(read(R"("logprobs": 5)").logprobs, 5);
}

TEST(OpenAiRequests, a_wrong_field_is_named) {
  EXPECT_EQ(refused(R"({"prompt": "x"})").key, "model");
  EXPECT_EQ(refused(R"({"model": "m"})").key, "prompt");
  const std::pair<const char*, const char*> fields[] = {
      {R"("n": 0)", "n"},
      {R"("n": 1000)", "n"},
      {R"("n": "two")", "n"},
      {R"("max_tokens": -1)", "max_tokens"},
      {R"("temperature": 3)", "temperature"},
      {R"("temperature": "hot")", "temperature"},
      {R"("top_p": 0)", "top_p"},
      {R"("seed": 1.5)", "seed"},
      {R"("stop": ["1", "2", "3", "4", "5"])", "stop"},
      {R"("stop": 3)", "stop"},
      {R"("stream": "yes")", "stream"},
      {R"("best_of": 2)", "best_of"},
      {R"("stream_options": {"include_usage": true})", "stream_options"},
      {R"("min_p": 1.5)", "min_p"},
      {R"("presence_penalty": 2.1)", "presence_penalty"},
      {R"("frequency_penalty": -2.1)", "frequency_penalty"},
      {R"("repetition_penalty": 0)", "repetition_penalty"},
      {R"("logit_bias": [1])", "logit_bias"},
      {R"("logit_bias": {"1": 101})", "logit_bias"},
      {R"("logit_bias": {"1": "much"})", "logit_bias"},
      {R"("logit_bias": {"one": 1})", "logit_bias"},
      {R"("logit_bias": {"-1": 1})", "logit_bias"},
      {R"("logit_bias": {"01": 1})", "logit_bias"},
      {R"("logit_bias": {"3000000000": 1})", "logit_bias"},
      {R"("logit_bias": {"1.0": 1})", "logit_bias"},
      {R"("min_tokens": 17)", "min_tokens"},
      {R"("min_tokens": -1)", "min_tokens"},
      {R"("ignore_eos": 1)", "ignore_eos"},
      {R"("stop_token_ids": 4)", "stop_token_ids"},
      {R"("stop_token_ids": ["4"])", "stop_token_ids"},
      {R"("logprobs": 6)", "logprobs"},
      {R"("logprobs": true)", "logprobs"}};
  for (const auto& [field, key] : fields) {
    const Error error = refused_field(field);
    EXPECT_EQ(error.kind, ErrorKind::invalid) << field;
    EXPECT_NE(error.message.find(key), std::string::npos) << field << ": " << error.message;
  }
  EXPECT_EQ(refused_field(fmt::format(R"("stop": "{}")", std::string(1025, 'x'))).key, "stop");
  EXPECT_EQ(refused_field(fmt::format(R"("stop": ["a", "{}"])", std::string(1025, 'x'))).key, "stop");
  EXPECT_EQ(read(fmt::format(R"("stop": "{}")", std::string(1024, 'x'))).stop.size(), 1U);
  std::string tokens = "0", biases = R"("0": 1)";
  for (int token = 1; token <= 1024; ++token) {
    tokens += fmt::format(", {}", token);
    biases += fmt::format(R"(, "{}": 1)", token);
  }
  EXPECT_EQ(refused_field(fmt::format(R"("stop_token_ids": [{}])", tokens)).key, "stop_token_ids");
  EXPECT_EQ(refused_field(fmt::format(R"("logit_bias": {{{}}})", biases)).key, "logit_bias");
  const Error unknown = refused_field(R"("temprature": 1)");
  EXPECT_EQ(unknown.code, ErrorCode::unknown_key);
  EXPECT_EQ(unknown.key, "temprature");
  EXPECT_EQ(unknown.hint, "did you mean 'temperature'?");
}

TEST(OpenAiRequests, a_field_that_is_not_supported_is_refused_not_ignored) {
  const Error error = refused_field(R"("suffix": "end")");
  EXPECT_EQ(error.kind, ErrorKind::unsupported);
  EXPECT_EQ(error.key, "suffix");
}

TEST(OpenAiRequests, an_echo_alone_has_no_new_tokens) {
  const CompletionRequest request = read(R"("echo": true, "logprobs": 1, "max_tokens": 0)");
  EXPECT_TRUE(request.echo && request.logprobs == 1 && request.max_tokens == 0);
  EXPECT_EQ(refused_field(R"("max_tokens": 0)").key, "max_tokens");
}

TEST(OpenAiRequests, hostile_bodies_are_refused) {
  for (const std::string& body :
       {std::string(), std::string("{"), std::string("[]"), std::string("\"text\""), std::string(100'000, '['),
        std::string("{\"model\": \"\xff\"}"), std::string(R"({"model": "m", "model": "m", "prompt": "x"})")})
    EXPECT_EQ(refused(body).kind, ErrorKind::invalid) << body.substr(0, 40);
}

Result<CompletionRequest> chat(const std::string& messages, const std::string& more = "") {
  return parse_chat(R"({"model": "m", "messages": )" + messages + (more.empty() ? "" : ", " + more) + "}");
}
constexpr const char* kHi = R"([{"role": "user", "content": "Hi"}])";

TEST(OpenAiRequests, a_conversation_is_read_as_templates_expect_it) {
  const CompletionRequest request =
      chat(R"([{"role": "system", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
               {"role": "assistant", "content": null, "tool_calls":
                 [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{\"x\": [1]}"}}]},
               {"role": "tool", "tool_call_id": "1", "content": "c"}])",
           R"("tools": [{"type": "function", "function": {"name": "f"}}], "tool_choice": "auto")")
          .value();
  EXPECT_EQ(to_json(request.conversation->messages),
            R"([{"role":"system","content":"a\nb"},{"role":"assistant","content":null,"tool_calls":)"
            R"([{"id":"1","type":"function","function":{"name":"f","arguments":{"x":[1]}}}]},)"
            R"({"role":"tool","content":"c","tool_call_id":"1"}])");
  EXPECT_EQ(request.conversation->tools.items().size(), 1U);
  EXPECT_TRUE(chat(kHi, R"("tools": [{"a": 1}], "tool_choice": "none")")->conversation->tools.is_null());
  EXPECT_EQ(chat(kHi)->max_tokens, INT32_MAX);
  EXPECT_EQ(chat(kHi, R"("max_tokens": 7)")->max_tokens, 7);
  EXPECT_EQ(chat(kHi, R"("max_tokens": 7, "max_completion_tokens": 9)")->max_tokens, 9);
  EXPECT_EQ(chat(kHi, R"("stop": ["x"], "seed": 1, "n": 3, "stream": true)")->n, 3);
  EXPECT_EQ(chat(kHi, R"("response_format": {"type": "json_object"})")->form.kind, AnswerForm::Kind::object);
  EXPECT_EQ(read(R"("guided_regex": "a")").form.kind, AnswerForm::Kind::regex);
  EXPECT_EQ(chat(kHi, R"("logprobs": true)").value().logprobs, 0);
  EXPECT_EQ(chat(kHi, R"("logprobs": true, "top_logprobs": 20)").value().logprobs, 20);
  EXPECT_FALSE(chat(kHi, R"("logprobs": false, "top_logprobs": 0)").value().logprobs);
  EXPECT_TRUE(chat(kHi, R"("response_format": {"type": "text"}, "logprobs": false, "user": "u")").ok());
}

TEST(OpenAiRequests, what_a_chat_may_not_have_is_named) {
  const auto key = [](const Result<CompletionRequest>& request) { return request.ok() ? "none" : request.error().key; };
  for (const char* messages :
       {"1", "[]", "{}", "[1]", R"([{"role": "user"}])", R"([{"role": "king", "content": "a"}])",
        R"([{"role": "user", "content": 1}])", R"([{"role": "user", "content": [{"type": "image_url"}]}])",
        R"([{"role": "user", "content": "a", "odd": "b"}])", R"([{"role": "assistant", "tool_calls": [1]}])"})
    EXPECT_EQ(key(chat(messages)), "messages") << messages;
  EXPECT_EQ(key(chat(kHi, R"("tool_choice": "required")")), "tool_choice");
  EXPECT_EQ(key(chat(kHi, R"("tools": [{"type": "function", "function": {"name": "f"}}], "tool_choice": "required",
                             "response_format": {"type": "json_object"})")),
            "tool_choice");
  EXPECT_EQ(key(chat(kHi, R"("response_format": {"type": "xml"})")), "response_format");
  EXPECT_EQ(key(chat(kHi, R"("logprobs": 1)")), "logprobs");
  EXPECT_EQ(key(chat(kHi, R"("top_logprobs": 1)")), "top_logprobs");
  EXPECT_EQ(key(chat(kHi, R"("logprobs": true, "top_logprobs": 21)")), "top_logprobs");
  EXPECT_EQ(key(chat(kHi, R"("prompt": "x")")), "prompt");
  EXPECT_EQ(key(chat(kHi, R"("echo": true)")), "echo");
  EXPECT_EQ(key(parse_chat(R"({"model": "m"})")), "messages");
}

}  // namespace
}  // namespace systole
