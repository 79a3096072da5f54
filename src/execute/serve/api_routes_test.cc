// What is asked beside answers: tokens, models, metrics; and prompts that fill the context.
#include "execute/serve/api_routes.h"

#include "execute/serve/testing/api_routes_fixture.h"

namespace systole {
namespace {

using ApiRoutes = ApiRoutesTest;

TEST_F(ApiRoutes, a_prompt_of_the_whole_context_has_one_more_token) {
  start({});
  const auto asked = [&](std::int64_t tokens) {
    const std::vector<Node> prompt(static_cast<std::size_t>(tokens), Node(5));
    const Node body = Node::map({{"model", "m"}, {"prompt", Node::sequence(prompt)}, {"max_tokens", 1'000'000'000}});
    return post("/v1/completions", to_json(body));
  };
  const std::string answer = asked(64);
  ASSERT_EQ(status_of(answer), 200) << answer;
  const Node node = parse_json(body_of(answer), "answer").value();
  EXPECT_EQ(node.find("usage")->find("completion_tokens")->text(), "1");
  EXPECT_EQ(node.find("choices")->items()[0].find("finish_reason")->text(), "length");
  EXPECT_EQ(status_of(asked(65)), 400);
}

TEST_F(ApiRoutes, tokens_of_a_text_are_json) {
  start({});
  const std::vector<std::int32_t> expected = tiny_tokens("ba do");
  const std::string answer = post("/tokenize", R"({"prompt": "ba do"})");
  ASSERT_EQ(status_of(answer), 200) << answer;
  const Node node = parse_json(body_of(answer), "answer").value();
  std::vector<Node> tokens;
  for (const std::int32_t token : expected) tokens.emplace_back(token);
  EXPECT_EQ(node, Node::map({{"count", expected.size()}, {"max_model_len", 64}, {"tokens", Node::sequence(tokens)}}));
}

TEST_F(ApiRoutes, requests_about_tokens_are_refused_as_wrong) {
  start({});
  const auto asked = [&](const char* path, std::string_view body) { return status_of(post(path, body)); };
  const auto tokens = [](std::size_t count) {
    const std::vector<Node> five(count, Node(5));
    return to_json(Node::map({{"tokens", Node::sequence(five)}}));
  };
  EXPECT_EQ(asked("/tokenize", R"({"prompt": "ba"})"), 200);
  EXPECT_EQ(asked("/detokenize", tokens(64)), 200);
  EXPECT_EQ(asked("/detokenize", tokens(65)), 400) << "more than a sequence has";
  EXPECT_EQ(asked("/detokenize", R"({"tokens": [5]})"), 200);
  for (const char* wrong : {"5", "{}", R"({"prompt": 5})", R"({"prompt": null})"})
    EXPECT_EQ(asked("/tokenize", wrong), 400) << wrong;
  for (const char* wrong :
       {"5", "{}", R"({"tokens": 5})", R"({"tokens": "5"})", R"({"tokens": [400]})", R"({"tokens": [-1]})"})
    EXPECT_EQ(asked("/detokenize", wrong), 400) << wrong;
}

TEST_F(ApiRoutes, a_text_that_cannot_fit_is_not_encoded) {
  std::atomic<int> encoded = 0;
  start({.encoding = [&] { ++encoded; }});
  std::size_t longest = 0;
  for (std::int32_t token = 0; token < tiny_tokenizer().vocabulary(); ++token)
    longest = std::max(longest, tiny_tokenizer().bytes_of(token).size());
  const auto asked = [&](std::size_t bytes) {
    return post("/v1/completions", to_json(Node::map({{"model", "m"}, {"prompt", std::string(bytes, '~')}})));
  };
  EXPECT_EQ(status_of(asked(64 * longest + 1)), 400);
  EXPECT_EQ(encoded, 0);
  EXPECT_EQ(status_of(asked(64 * longest)), 400) << "it has a token per byte";
  EXPECT_EQ(encoded, 1);
}

TEST_F(ApiRoutes, metrics_count) {
  start({});
  EXPECT_EQ(status_of(ask(completion(R"(, "max_tokens": 3)")).answer()), 200);
  const std::string text = get("/metrics");
  const std::vector<std::int32_t> prompt = tiny_tokens("ba");
  for (const std::string& line : {std::string("vllm:request_success_total{model_name=\"m\"} 1\n"),
                                  std::string("vllm:generation_tokens_total{model_name=\"m\"} 3\n"),
                                  fmt::format("vllm:prompt_tokens_total{{model_name=\"m\"}} {}\n", prompt.size()),
                                  std::string("vllm:prefix_cache_hits_total{model_name=\"m\"} 0\n"),
                                  std::string("vllm:num_preemptions_total{model_name=\"m\"} 0\n"),
                                  std::string("vllm:spec_decode_num_draft_tokens_total{model_name=\"m\"} 0\n"),
                                  std::string("vllm:spec_decode_num_accepted_tokens_total{model_name=\"m\"} 0\n"),
                                  std::string("systole:cancelled_total{model_name=\"m\"} 0\n"),
                                  std::string("systole:refused_total{model_name=\"m\"} 0\n")})
    EXPECT_NE(text.find("\n" + line), text.npos) << line << text;
}

TEST_F(ApiRoutes, the_step_that_is_served_is_told_of_a_run_alone) {
  start({.step = 7});
  EXPECT_EQ(parse_json(body_of(get("/v1/models/m")), "model").value().find("step")->text(), "7");
  serving_->reload({9, [](Engine&, std::int64_t) -> Result<std::int64_t> { return 9; }});
  serving_->note_failed_reload();
  EXPECT_TRUE(comes_true([&] { return serving_->counts().step == 9; }));
  EXPECT_EQ(parse_json(body_of(get("/v1/models/m")), "model").value().find("step")->text(), "9");
  const std::string text = get("/metrics");
  for (const char* line :
       {"systole:checkpoint_step{model_name=\"m\"} 9\n", "systole:checkpoint_reloads_total{model_name=\"m\"} 1\n",
        "systole:checkpoint_failed_reloads_total{model_name=\"m\"} 1\n"})
    EXPECT_NE(text.find(std::string("\n") + line), text.npos) << line << text;
}

TEST_F(ApiRoutes, a_published_model_has_no_step) {
  start({});
  EXPECT_EQ(parse_json(body_of(get("/v1/models/m")), "model").value().find("step"), nullptr);
  EXPECT_EQ(get("/metrics").find("checkpoint"), std::string::npos);
}

}  // namespace
}  // namespace systole
