// Answers of a form that is asked for: stop strings, schemas, expressions, calls of tools.
#include "execute/serve/testing/api_routes_fixture.h"

namespace systole {
namespace {

using ApiRoutesForms = ApiRoutesTest;

TEST_F(ApiRoutesForms, an_answer_that_ends_at_a_stop_string_counts_as_ended) {
  start({});
  const auto text_with = [&](const std::string& more) {
    const Node node = parse_json(body_of(ask(completion(R"(, "max_tokens": 3)" + more)).answer()), "answer").value();
    return node.find("choices")->items()[0].find("text")->text();
  };
  const std::string whole = text_with("");
  ASSERT_FALSE(whole.empty());
  EXPECT_EQ(text_with(R"(, "stop": )" + to_json(Node(whole.substr(0, 1)))), "");
  EXPECT_EQ(serving_->counts().ended, 2);
  EXPECT_EQ(serving_->counts().cancelled, 0);
}

TEST_F(ApiRoutesForms, an_answer_has_the_form_that_is_asked_for) {
  start({.slots = 2, .context = 384});
  const auto answered = [&](const std::string& more) {
    std::string request = completion(R"(, "max_tokens": 340, )" + more);  // enough for the longest with all its indents
    request.replace(request.find(R"("temperature": 0)"), 16, R"("temperature": 1)");
    const std::string answer = ask(request).answer();
    EXPECT_EQ(status_of(answer), 200) << answer;
    const Node choice = parse_json(body_of(answer), "answer").value().find("choices")->items()[0];
    EXPECT_EQ(choice.text_at("finish_reason"), "stop") << answer;
    return choice.text_at("text");
  };
  const char* schema = R"({"type": "object", "properties": {"name": {"type": "string", "maxLength": 5},
      "sizes": {"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 99}, "maxItems": 3}},
      "required": ["name", "sizes"]})";
  for (int seed = 0; seed < 5; ++seed) {
    const Node value =
        parse_json(answered(fmt::format(R"("seed": {}, "guided_json": {})", seed, schema)), "text").value();
    EXPECT_EQ(value.keys(), (std::vector<std::string>{"name", "sizes"}));
    EXPECT_LE(value.find("sizes")->items().size(), 3U);
    for (const Node& size : value.find("sizes")->items()) EXPECT_TRUE(size.as_int(1, 99).ok()) << size.text();
  }
  EXPECT_EQ(answered(R"("guided_regex": "[ab]{3}c")").find('c'), 3U);
  EXPECT_EQ(answered(R"("guided_choice": ["perhaps"])"), "perhaps");

  const std::string stream = body_of(ask(completion(R"(, "stream": true, "guided_choice": ["perhaps"])")).answer());
  EXPECT_NE(stream.find(R"("finish_reason":"stop")"), stream.npos) << stream;
  const std::string cut = ask(completion(R"(, "max_tokens": 2, "guided_regex": "a{20}b{20}")")).answer();
  EXPECT_NE(cut.find(R"("finish_reason":"length")"), cut.npos) << cut;
}

// As lm-evaluation-harness asks, and reads token_logprobs[length of the context:-1].
TEST_F(ApiRoutesForms, an_echo_has_the_logprobs_of_the_prompt) {
  start({.slots = 2});
  const std::string text = "ba d\xC3\xB6 do";
  const std::vector<std::int32_t> tokens = tiny_tokens(text);
  const auto choice = [&](const Node& prompt, std::int64_t max_tokens, std::int64_t completion_tokens) {
    const Node asked = Node::map({{"model", "m"},
                                  {"prompt", prompt},
                                  {"temperature", 0},
                                  {"max_tokens", max_tokens},
                                  {"logprobs", 1},
                                  {"seed", 1234},
                                  {"echo", true}});
    const std::string answer = post("/v1/completions", to_json(asked));
    EXPECT_EQ(status_of(answer), 200) << answer;
    const Node node = parse_json(body_of(answer), "answer").value();
    EXPECT_EQ(node.find("usage")->text_at("completion_tokens"), std::to_string(completion_tokens));
    return node.find("choices")->items()[0];
  };
  std::vector<Node> numbers(tokens.begin(), tokens.end());
  const Node whole = choice(text, 1, 1), by_tokens = choice(Node::sequence(numbers), 1, 1);
  EXPECT_EQ(*whole.find("logprobs"), *by_tokens.find("logprobs"));
  const auto list = [](const Node& of, const char* key) { return of.find("logprobs")->find(key)->items(); };
  const Node echo = choice(text, 0, 0);
  EXPECT_EQ(echo.text_at("text"), text);
  EXPECT_EQ(echo.text_at("finish_reason"), "length");
  for (const char* key : {"tokens", "token_logprobs", "top_logprobs", "text_offset"}) {
    ASSERT_EQ(list(whole, key).size(), tokens.size() + 1) << key;
    EXPECT_TRUE(std::ranges::equal(list(echo, key), list(whole, key).first(tokens.size()))) << key;
  }
  EXPECT_TRUE(list(whole, "token_logprobs")[0].is_null() && list(whole, "top_logprobs")[0].is_null());
  for (std::size_t i = 1; i <= tokens.size(); ++i) {
    const double own = list(whole, "token_logprobs")[i].as_double().value();
    double best = own;
    const Node& top = list(whole, "top_logprobs")[i];
    for (const Node::Entry& each : top.entries()) best = std::max(best, each.value.as_double().value());
    EXPECT_EQ(top.entries().size(), best == own ? 1U : 2U) << "the likeliest, and itself";
  }
  EXPECT_EQ(list(whole, "text_offset")[0].text(), "0");
  EXPECT_EQ(list(whole, "text_offset").back().text(), "8") << "of the new token";
}

TEST_F(ApiRoutesForms, a_required_call_is_a_call_whole_and_as_a_stream) {
  start({.context = 384, .chat_template = "{{ messages[0].content }}<tool_call>{{ tools | length }}"});
  const auto chat = [&](const std::string& more) {
    return post(
        "/v1/chat/completions",
        R"({"model": "m", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 340, "seed": 3, "tools": [
            {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties":
              {"days": {"type": "integer", "minimum": 1, "maximum": 9}}, "required": ["days"]}}}])" +
            more + "}");
  };
  const std::string named = R"(, "tool_choice": {"type": "function", "function": {"name": "weather"}})";
  const std::string answer = chat(named);
  ASSERT_EQ(status_of(answer), 200) << answer;
  const Node choice = parse_json(body_of(answer), "answer").value().find("choices")->items()[0];
  EXPECT_EQ(choice.text_at("finish_reason"), "tool_calls") << answer;
  const Node& message = *choice.find("message");
  EXPECT_TRUE(message.find("content")->is_null());
  ASSERT_EQ(message.find("tool_calls")->items().size(), 1U);
  const Node& call = message.find("tool_calls")->items()[0];
  EXPECT_EQ(call.text_at("type"), "function");
  EXPECT_TRUE(call.text_at("id").starts_with("call_"));
  EXPECT_EQ(call.find("function")->text_at("name"), "weather");
  const std::string arguments = call.find("function")->text_at("arguments");
  EXPECT_TRUE(parse_json(arguments, "arguments").value().find("days")->as_int(1, 9).ok()) << arguments;

  const std::string single = R"(, "tool_choice": "required", "parallel_tool_calls": false, "stream": true)";
  const std::string stream = body_of(chat(single));
  EXPECT_NE(stream.find(R"("finish_reason":"tool_calls")"), stream.npos) << stream;
  EXPECT_NE(stream.find(R"("delta":{"tool_calls":[{"index":0,"id":"call_)"), stream.npos) << stream;
  EXPECT_EQ(stream.find("<tool_call>"), stream.npos) << "it is no text: " << stream;
  EXPECT_TRUE(stream.ends_with("data: [DONE]\n\n"));
  EXPECT_EQ(status_of(chat(R"(, "tool_choice": "auto")")), 200);
  const std::string unused = R"({"model": "m", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 2,
                                 "tools": [{"a": 1}], "tool_choice": "none"})";
  EXPECT_EQ(status_of(post("/v1/chat/completions", unused)), 200);
}

TEST_F(ApiRoutesForms, a_template_without_calls_of_a_known_format_cannot_require_them) {
  start({.chat_template = "{{ messages[0].content }}"});
  const std::string body =
      R"({"model": "m", "messages": [{"role": "user", "content": "Hi"}], "tool_choice": "required",
          "tools": [{"type": "function", "function": {"name": "f"}}]})";
  const std::string answer = post("/v1/chat/completions", body);
  EXPECT_EQ(status_of(answer), 400) << answer;
  EXPECT_NE(answer.find(R"("param":"tool_choice")"), answer.npos) << answer;
}

TEST_F(ApiRoutesForms, a_form_that_is_not_supported_is_refused_and_serving_goes_on) {
  start({});
  for (const char* wrong :
       {R"("guided_json": {"not": {}})", R"("guided_regex": "(a")", R"("guided_regex": "(a|b)*a(a|b){40}")"}) {
    const std::string answer = ask(completion(std::string(", ") + wrong)).answer();
    EXPECT_EQ(status_of(answer), 400) << wrong << answer;
    EXPECT_NE(answer.find(R"("param":"guided_)"), answer.npos) << answer;
  }
  EXPECT_EQ(status_of(ask(completion(R"(, "max_tokens": 2)")).answer()), 200);
}

}  // namespace
}  // namespace systole
