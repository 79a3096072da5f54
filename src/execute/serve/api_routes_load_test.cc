// What happens when something is full, slow, broken or ending.
#include "execute/serve/testing/api_routes_fixture.h"

namespace systole {
namespace {

using std::chrono::steady_clock;
using ApiRoutesLoad = ApiRoutesTest;

TEST_F(ApiRoutesLoad, a_full_queue_refuses_for_now_and_what_never_fits_for_good) {
  start({.waiting = 1});
  const auto engine = brake();
  HttpWire waits = queue(completion(R"(, "max_tokens": 2)")), refused = queue(completion());
  engine->pass(2);
  const std::string answer = refused.answer();
  EXPECT_EQ(status_of(answer), 429) << answer;
  EXPECT_NE(answer.find("\r\nRetry-After: 1\r\n"), answer.npos) << answer;
  EXPECT_EQ(status_of(waits.answer()), 200);
  const std::string never = ask(completion(R"(, "n": 3)")).answer();
  EXPECT_EQ(status_of(never), 400) << never;
  EXPECT_NE(never.find(R"("param":"n")"), never.npos) << never;
}

TEST_F(ApiRoutesLoad, answers_of_a_refused_request_are_not_computed) {
  start({.waiting = 1});
  const auto engine = brake();
  HttpWire refused = queue(completion(R"(, "n": 2)"), 2);
  engine->pass(2);
  EXPECT_EQ(status_of(refused.answer()), 429) << "one fits and the other does not";
  EXPECT_TRUE(comes_true([&] { return serving_->counts().cancelled == 1; }));
  EXPECT_EQ(serving_->counts().answer_tokens, 2) << "those of the sequence that ran";
}

TEST_F(ApiRoutesLoad, who_leaves_the_queue_is_not_answered) {
  start({});
  const auto engine = brake();
  HttpWire leaves = queue(completion(R"(, "stream": true)"));
  leaves.hang_up();
  EXPECT_TRUE(comes_true([&] { return server_->connections() == 0; }));
  engine->pass(2);
  EXPECT_TRUE(comes_true([&] { return serving_->counts().cancelled == 1; }));
  EXPECT_LE(serving_->counts().answer_tokens, 3) << "16 are asked for";
}

TEST_F(ApiRoutesLoad, a_slow_reader_is_cut_and_its_slot_is_free) {
  // 24 MB of events, and room for some forty before the first must have gone.
  start({.context = 256, .model = std::string(96 << 10, 'm'), .limits = {.stream_buffer = kMiB * 4}});
  HttpWire reader = ask(completion(R"(, "max_tokens": 250, "stream": true)"));  // each event has the model's name
  EXPECT_TRUE(comes_true([&] { return serving_->counts().cancelled == 1; }));
  EXPECT_LT(serving_->counts().answer_tokens, 250);
  EXPECT_EQ(status_of(ask(completion(R"(, "max_tokens": 2)")).answer()), 200);
  const std::string got = reader.rest();
  EXPECT_EQ(status_of(got), 200);
  EXPECT_EQ(got.find("[DONE]"), got.npos);
  EXPECT_FALSE(got.ends_with("\r\n0\r\n\r\n")) << "it is not whole";
}

TEST_F(ApiRoutesLoad, a_stream_without_room_for_its_last_event_is_not_whole) {
  const std::string request = R"(, "max_tokens": 1, "stream": true)";
  start({});
  const std::string whole = body_of(ask(completion(request)).answer());
  ASSERT_TRUE(whole.ends_with("data: [DONE]\n\n")) << whole;
  server_.reset();
  start({.limits = {.stream_buffer = Bytes(static_cast<std::int64_t>(whole.size()) - 1)}});
  const auto engine = brake();
  HttpWire reader = queue(completion(request));
  HttpWire stops = ask("GET /stands HTTP/1.1\r\nHost: x\r\n\r\n");  // nothing leaves meanwhile
  ASSERT_EQ(stands_.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
  std::promise<void> last;
  serving_->submit({.priority = -1, .prompt = {5}, .max_tokens = 1},
                   {[](std::int32_t) { return true; }, [&](SequenceEnd) { last.set_value(); }, [](const Error&) {}});
  engine->pass(2);
  EXPECT_EQ(last.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
  may_go_.set_value();
  const std::string got = reader.rest();
  EXPECT_EQ(got.find("[DONE]"), got.npos) << got;
  EXPECT_FALSE(got.ends_with("\r\n0\r\n\r\n")) << got;
}

TEST_F(ApiRoutesLoad, draining_refuses_what_comes_and_lets_end_what_runs) {
  start({.slots = 2});
  const auto engine = brake(3);
  HttpWire runs = queue(completion(R"(, "max_tokens": 3)"));
  engine->pass(1);
  ASSERT_TRUE(engine->holds(2)) << "in the step that began the other";
  serving_->drain();
  EXPECT_EQ(status_of(get("/health/ready")), 503);
  EXPECT_EQ(status_of(get("/health")), 503);
  EXPECT_EQ(status_of(get("/health/live")), 200);
  HttpWire late = queue(completion());
  engine->pass(3);
  const std::string refused = late.answer(), answer = runs.answer();
  EXPECT_EQ(status_of(refused), 503) << refused;
  EXPECT_NE(refused.find("\r\nRetry-After: 1\r\n"), refused.npos) << refused;
  ASSERT_EQ(status_of(answer), 200) << answer;
  const Node node = parse_json(body_of(answer), "answer").value();
  EXPECT_EQ(node.find("usage")->find("completion_tokens")->text(), "3");
}

TEST_F(ApiRoutesLoad, damaged_weights_are_told_as_a_failure_of_the_server) {
  start({.spoiled = true});
  EXPECT_EQ(status_of(get("/health/ready")), 200);
  for (const char* more : {"", R"(, "stream": true)"}) {
    const std::string answer = ask(completion(more)).answer();
    EXPECT_EQ(status_of(answer), 500) << answer;
    EXPECT_NE(answer.find("weights are damaged"), answer.npos) << answer;
    EXPECT_EQ(status_of(get("/health/ready")), 503);
  }
  EXPECT_EQ(status_of(get("/health/live")), 200);
}

TEST_F(ApiRoutesLoad, a_prompt_that_takes_long_to_encode_holds_up_no_connection) {
  std::promise<void> begun, may_end;
  start({.encoding = [&] {
    begun.set_value();
    may_end.get_future().wait_for(std::chrono::seconds(20));
  }});
  HttpWire slow = ask(completion(R"(, "max_tokens": 2)"));
  ASSERT_EQ(begun.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
  const auto before = steady_clock::now();
  EXPECT_EQ(status_of(get("/health/live")), 200);
  EXPECT_LT(steady_clock::now() - before, std::chrono::seconds(10));
  may_end.set_value();
  EXPECT_EQ(status_of(slow.answer()), 200);
}

TEST_F(ApiRoutesLoad, a_token_is_one_client_however_it_is_shown) {
  start({});
  const auto engine = brake();
  const auto shown = [&](const char* authorization, const char* id) {
    std::string request = completion(R"(, "max_tokens": 2)");
    return request.replace(request.find("X-Request-Id: r"), 15,
                           fmt::format("X-Request-Id: {}\r\nAuthorization: {}", id, authorization));
  };
  const HttpWire first = queue(shown("Bearer one", "first")), again = queue(shown("bearer one", "again")),
                 other = queue(shown("Bearer two", "other"));
  engine->pass(2);
  const auto answered = [&] {
    const std::lock_guard lock(mutex_);
    return answered_;
  };
  EXPECT_TRUE(comes_true([&] { return answered().size() == 3; }));
  EXPECT_EQ(answered(), (std::vector<std::string>{"first", "other", "again"})) << "each in turn";
}

}  // namespace
}  // namespace systole
