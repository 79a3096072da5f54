#include "execute/serve/eval/judge.h"

#include <gtest/gtest.h>

#include <atomic>

#include "ground/net/testing/http_stub.h"

namespace systole {
namespace {

std::string completion(const std::string& message) { return "{\"choices\": [{\"message\": " + message + "}]}"; }

class JudgeTest : public testing::Test {
 protected:
  JudgeSpec spec_of(const StubServer& server) const {
    return {.url = server.url() + "/v1",
            .model = "large",
            .key = "sk-sesame",
            .prompt = FieldTemplate::parse("Rate {response}").value(),
            .pattern = TextPattern::compile("(?:Score: |=)(\\S+)").value(),
            .lowest = 1,
            .highest = 10,
            .retries = 2};
  }
  Result<Judgement> judged(
      const JudgeSpec& spec, const std::function<bool()>& cancelled = [] { return false; }) {
    Judge judge = Judge::open(spec, clock_).value();
    return judge.score(Node::map({{"response", "\"yes\""}}), cancelled);
  }
  // Of a judge that says this.
  Judgement on(const std::string& body) {
    StubServer server([&](const StubRequest&, StubAnswer& answer) { answer.whole(200, body); });
    return judged(spec_of(server)).value();
  }

  FakeClock clock_;
};

TEST_F(JudgeTest, asks_for_a_chat_completion_and_takes_the_score_out) {
  StubRequest seen;
  StubServer server([&](const StubRequest& request, StubAnswer& answer) {
    seen = request;
    answer.whole(200, completion("{\"content\": \"Well. Score: 7.5\"}"));
  });
  JudgeSpec spec = spec_of(server);
  spec.tokens = 50;
  const Judgement said = judged(spec).value();
  EXPECT_EQ(said.score, 7.5);
  EXPECT_EQ(said.text, "Well. Score: 7.5");
  EXPECT_EQ(seen.method, "POST");
  EXPECT_EQ(seen.path, "/v1/chat/completions");
  EXPECT_EQ(seen.header("authorization"), "Bearer sk-sesame");
  const Node body = parse_json(seen.body, "body").value();
  EXPECT_EQ(body.text_at("model"), "large");
  EXPECT_EQ(body.text_at("max_tokens"), "50");
  EXPECT_EQ(body.find("messages")->items()[0].text_at("content"), "Rate \"yes\"");
}

TEST_F(JudgeTest, refusals_and_scores_that_are_none_are_told_apart) {
  EXPECT_EQ(on(completion("{\"content\": \"Score: 1\"}")).score, 1);
  const Judgement refused = on(completion("{\"content\": null, \"refusal\": \"I cannot: Score: 5\"}"));
  EXPECT_EQ(refused.score, std::nullopt);
  EXPECT_EQ(refused.why, "the judge refused");
  EXPECT_EQ(refused.text, "I cannot: Score: 5");
  EXPECT_EQ(on("{\"choices\": [{\"message\": {}, \"finish_reason\": \"content_filter\"}]}").why, "the judge refused");
  for (const char* none : {"Score 5", "Score: five", "Score: 5x", "Score: nan", "", "Score: 0.9", "Score: 11"}) {
    const Judgement said = on(completion(fmt::format("{{\"content\": \"{}\"}}", none)));
    EXPECT_EQ(said.score, std::nullopt) << none;
    EXPECT_NE(said.why, "") << none;
  }
  EXPECT_EQ(on(completion("{\"content\": \"Score: 11\"}")).why,
            "the judge's score is 11, which is not between 1 and 10");
}

TEST_F(JudgeTest, what_may_pass_is_tried_again_and_no_more_than_that) {
  std::atomic<int> asked = 0;
  StubServer server([&](const StubRequest&, StubAnswer& answer) {
    switch (asked++ % 3) {
      case 0: return answer.whole(429, "slowly", {{"Retry-After", "20"}});
      case 1: return answer.whole(200, "{\"choices\": ");
      default: return answer.whole(200, completion("{\"content\": \"=3\"}"));
    }
  });
  JudgeSpec spec = spec_of(server);
  EXPECT_EQ(judged(spec)->score, 3);
  EXPECT_EQ(asked, 3);
  EXPECT_NEAR(clock_.now().count(), 20 + 2, 1e-6) << "as the server asked, then twice the first wait";
  spec.retries = 1;
  const Result<Judgement> given_up = judged(spec);
  ASSERT_FALSE(given_up.ok());
  EXPECT_EQ(given_up.error().kind, ErrorKind::io);
  EXPECT_NE(given_up.error().message.find("gave no score in 2 tries: the reply is no chat completion"),
            std::string::npos)
      << given_up.error().message;
  EXPECT_EQ(asked, 5);
}

TEST_F(JudgeTest, what_stays_wrong_is_told_at_once_and_without_the_key) {
  std::atomic<int> asked = 0;
  StubServer server([&](const StubRequest& request, StubAnswer& answer) {
    ++asked;
    answer.whole(401, "\x1b[2J" + std::string(186, 'x') + request.header("authorization"));  // the key crosses the cut
  });
  const Result<Judgement> refused = judged(spec_of(server));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(refused.error().kind, ErrorKind::invalid);
  EXPECT_NE(refused.error().message.find("status 401: "), std::string::npos) << refused.error().message;
  EXPECT_EQ(refused.error().message.find("sk-"), std::string::npos) << refused.error().message;
  EXPECT_EQ(refused.error().message.find('\x1b'), std::string::npos);
}

TEST_F(JudgeTest, what_the_judge_says_does_not_show_the_key) {
  const Judgement said = on(completion("{\"content\": \"Bearer sk-sesame. Score: 7\"}"));
  EXPECT_EQ(said.score, 7);
  EXPECT_EQ(said.text, "Bearer ***. Score: 7");
}

TEST_F(JudgeTest, a_silent_judge_is_left_in_time_and_when_asked_to) {
  std::atomic<int> asked = 0;
  StubServer server([&](const StubRequest&, StubAnswer& answer) {
    ++asked;
    answer.wait();
  });
  JudgeSpec spec = spec_of(server);
  spec.timeout = Seconds(0.1);
  const Result<Judgement> late = judged(spec);
  ASSERT_FALSE(late.ok());
  EXPECT_EQ(late.error().kind, ErrorKind::io);
  EXPECT_NE(late.error().message.find("in 3 tries"), std::string::npos) << late.error().message;
  EXPECT_LE(asked, 3);
  spec.timeout = Seconds(30.0);
  const int before = asked;
  EXPECT_EQ(judged(spec, [&] { return asked > before; }).error().kind, ErrorKind::interrupted);
}

}  // namespace
}  // namespace systole
