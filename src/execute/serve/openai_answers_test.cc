#include "execute/serve/openai_answers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace systole {
namespace {

TEST(OpenAiAnswers, logprobs_have_the_interfaces_form) {
  const double none = -std::numeric_limits<double>::infinity();
  const std::vector<CompletionToken> tokens{{"a", -0.5, {{"a", -0.5}, {"b", -1.25}}, 0},
                                            {"c", -3.5, {{"b", -0.25}, {"b", -2.5}, {"d", none}}, 1}};
  EXPECT_EQ(to_json(completion_choice(0, "ac", {}, completion_logprobs(tokens))),
            R"({"index":0,"text":"ac","logprobs":{"tokens":["a","c"],"token_logprobs":[-0.5,-3.5],)"
            R"("top_logprobs":[{"a":-0.5,"b":-1.25},{"b":-0.25,"d":-9999,"c":-3.5}],"text_offset":[0,1]},)"
            R"("finish_reason":null})");
  EXPECT_EQ(to_json(completion_logprobs(std::vector<CompletionToken>{{.text = "a", .logprob = {}}, tokens[0]})),
            R"({"tokens":["a","a"],"token_logprobs":[null,-0.5],"top_logprobs":[null,{"a":-0.5,"b":-1.25}],)"
            R"("text_offset":[0,0]})")
      << "a prompt's first token";
  EXPECT_EQ(to_json(completion_logprobs({})),
            R"({"tokens":[],"token_logprobs":[],"top_logprobs":[],"text_offset":[]})");
}

TEST(OpenAiAnswers, answers_and_errors_have_the_interfaces_form) {
  Node node = completion({"cmpl-1", 1700000000, "m"}, {completion_choice(0, "text", SequenceEnd::max_tokens)});
  node.set("usage", to_node(Usage{3, 4}));
  EXPECT_EQ(to_json(node), R"({"id":"cmpl-1","object":"text_completion","created":1700000000,"model":"m","choices":)"
                           R"([{"index":0,"text":"text","logprobs":null,"finish_reason":"length"}],)"
                           R"("usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}})");
  EXPECT_TRUE(completion_choice(0, "", {}).find("finish_reason")->is_null());
  EXPECT_EQ(completion_choice(0, "", SequenceEnd::stop).find("finish_reason")->text(), "stop");
  const Error busy = error(ErrorKind::busy, "64 requests wait already");
  EXPECT_EQ(http_status(busy), 429);
  EXPECT_EQ(to_json(error_node(busy)), R"({"error":{"message":"64 requests wait already","type":"rate_limit_error",)"
                                       R"("param":null,"code":null}})");
}

TEST(OpenAiAnswers, a_chat_is_answered_in_its_form) {
  const CompletionHead head{"chatcmpl-1", 5, "m"};
  EXPECT_EQ(to_json(chat_completion(head, {chat_choice(0, "a", SequenceEnd::stop)}, false)),
            R"({"id":"chatcmpl-1","object":"chat.completion","created":5,"model":"m","choices":[{"index":0,)"
            R"("message":{"role":"assistant","content":"a"},"logprobs":null,"finish_reason":"stop"}]})");
  EXPECT_EQ(to_json(chat_piece(0, {}, {})),
            R"({"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null})");
  const std::vector<ToolCall> calls{{"call_1", "f", R"({"x":1})"}};
  EXPECT_EQ(to_json(chat_choice(0, "", SequenceEnd::stop, calls)),
            R"({"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function",)"
            R"("function":{"name":"f","arguments":"{\"x\":1}"}}]},"logprobs":null,"finish_reason":"tool_calls"})");
  EXPECT_EQ(to_json(chat_piece(0, "", SequenceEnd::stop, calls)),
            R"({"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function",)"
            R"("function":{"name":"f","arguments":"{\"x\":1}"}}]},"logprobs":null,"finish_reason":"tool_calls"})");
  EXPECT_EQ(chat_choice(0, "a", SequenceEnd::max_tokens, calls).text_at("finish_reason"), "length");
  EXPECT_EQ(to_json(chat_piece(1, "b", SequenceEnd::max_tokens)),
            R"({"index":1,"delta":{"content":"b"},"logprobs":null,"finish_reason":"length"})");
}

TEST(OpenAiAnswers, logprobs_of_a_chat_have_their_bytes) {
  const std::vector<CompletionToken> tokens{
      {"a", -0.5, {{"a", -0.5}, {"bytes:\\xE2", -1.25}, {"token_id:2", -INFINITY}}, 0, "a", {"a", "\xE2", ""}}};
  EXPECT_EQ(to_json(chat_logprobs(tokens)),
            R"({"content":[{"token":"a","logprob":-0.5,"bytes":[97],"top_logprobs":[)"
            R"({"token":"a","logprob":-0.5,"bytes":[97]},{"token":"bytes:\\xE2","logprob":-1.25,"bytes":[226]},)"
            R"({"token":"token_id:2","logprob":-9999,"bytes":null}]}],"refusal":null})");
}

}  // namespace
}  // namespace systole
