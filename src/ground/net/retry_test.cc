#include "ground/net/retry.h"

#include <gtest/gtest.h>

#include "ground/net/testing/http_stub.h"

namespace systole {
namespace {

TEST(Retries, wait_longer_each_time_and_never_past_the_total) {
  FakeClock clock;
  Retries retries({.first = Seconds(1.0), .most = Seconds(8.0), .total = Seconds(100.0), .seed = 7}, clock);
  Seconds before = clock.now(), longest{};
  for (int n = 0; retries.wait(); ++n) {
    const Seconds waited = clock.now() - before;
    EXPECT_LE(waited, std::min(Seconds(8.0), Seconds(1.0) * std::exp2(n)));
    longest = std::max(longest, waited);
    before = clock.now();
  }
  EXPECT_GT(longest, Seconds(4.0));
  EXPECT_LE(clock.now(), Seconds(100.0));
  EXPECT_GT(retries.tries(), 12);
}

TEST(Retries, wait_as_long_as_the_server_asks) {
  FakeClock clock;
  Retries retries({.first = Seconds(0.1), .total = Seconds(100.0), .seed = 7}, clock);
  EXPECT_TRUE(retries.wait(Seconds(30.0)));
  EXPECT_EQ(clock.now(), Seconds(30.0));
  EXPECT_FALSE(retries.wait(Seconds(71.0))) << "beyond the total";
  EXPECT_EQ(clock.now(), Seconds(30.0)) << "so it does not begin to wait";
}

// A server that answers with these in turn, and then with 200; 0 closes the connection without an answer.
struct Answers {
  std::vector<int> statuses;
  std::atomic<std::size_t> asked = 0;
  HttpHeaders headers = {};
  StubServer server{[this](const StubRequest&, StubAnswer& answer) {
    const std::size_t n = asked++;
    const int status = n < statuses.size() ? statuses[n] : 200;
    if (status != 0) answer.whole(status, "body", headers);
  }};
};

Result<HttpSent> sent(Answers& answers, Clock& clock) {
  HttpPool pool({});
  return send_with_retries(pool, {.seed = 3}, clock,
                           [&]() -> Result<HttpRequest> { return HttpRequest{.url = answers.server.url() + "/x"}; });
}

TEST(SendWithRetries, goes_on_until_there_is_an_answer) {
  FakeClock clock;
  Answers late{.statuses = {503, 429, 0, 500}};
  const Result<HttpSent> reply = sent(late, clock);
  ASSERT_TRUE(reply.ok()) << reply.error().message;
  EXPECT_EQ(reply->reply.status, 200);
  EXPECT_TRUE(reply->may_be_second);
  EXPECT_EQ(late.asked, 5u);

  Answers calm{.statuses = {429, 404}};
  const Result<HttpSent> none = sent(calm, clock);
  EXPECT_EQ(none->reply.status, 404);
  EXPECT_FALSE(none->may_be_second) << "what was too much was not done";
}

TEST(SendWithRetries, says_why_it_gave_up) {
  FakeClock clock;
  Answers never{.statuses = std::vector<int>(1000, 503), .headers = {{"Retry-After", "20"}}};
  const Result<HttpSent> reply = sent(never, clock);
  ASSERT_FALSE(reply.ok());
  EXPECT_EQ(reply.error().kind, ErrorKind::io);
  EXPECT_EQ(never.asked, 4u) << "at 0, 20, 40 and 60 s";
  EXPECT_NE(reply.error().message.find("status 503; it was tried 4 times in 60 s"), std::string::npos)
      << reply.error().message;
}

}  // namespace
}  // namespace systole
