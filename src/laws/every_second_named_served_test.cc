// every-second-named, of a request that is served: its parts are its time, to the clock's step, under any load and however
// it ends; and a time that is held up stands in the part that was held up.

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "execute/serve/request_times.h"
#include "execute/serve/testing/api_routes_fixture.h"

namespace systole {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr milliseconds kHeld(40);

std::uint64_t test_seed() {
  const char* const text = std::getenv("SYSTOLE_TEST_SEED");
  return text == nullptr ? 1 : std::strtoull(text, nullptr, 10);
}

class EverySecondNamed : public ApiRoutesTest {
 protected:
  std::vector<HttpAccess> accesses(std::size_t count) {
    EXPECT_TRUE(comes_true([&] {
      const std::lock_guard lock(mutex_);
      return accesses_.size() >= count;
    }));
    const std::lock_guard lock(mutex_);
    return accesses_;
  }
  static nanoseconds time_in(const HttpAccess& access, std::string_view part) {
    for (const HttpRecord::Part& each : access.record->parts())
      if (each.name == part) return each.time;
    return {};
  }
};

void expect_whole(const HttpAccess& access) {
  ASSERT_NE(access.record, nullptr);
  nanoseconds sum{};
  std::string shown;
  for (const HttpRecord::Part& part : access.record->parts()) {
    EXPECT_GE(part.time.count(), 0) << part.name;
    sum += part.time;
    shown += fmt::format(" {} {}", part.name, part.time.count());
  }
  EXPECT_NEAR(static_cast<double>(sum.count()), access.time.count() * 1e9, 1) << access.path << shown;
}

TEST_F(EverySecondNamed, a_requests_parts_are_its_time_under_random_load) {
  start({.slots = 3, .waiting = 6, .context = 64});
  std::mt19937_64 random(test_seed());
  const auto drawn = [&](int below) { return static_cast<int>(random() % static_cast<std::uint64_t>(below)); };
  std::vector<HttpWire> open;
  constexpr int kRequests = 60;
  for (int i = 0; i < kRequests; ++i) {
    const int kind = drawn(8);
    std::string request = completion(
        fmt::format(R"(, "max_tokens": {}, "n": {}, "stream": {})", 1 + drawn(12), 1 + drawn(3), drawn(2) == 0));
    if (kind == 0) request = "GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n";
    if (kind == 1) request = completion(R"(, "max_tokens": -1)");
    if (kind == 2) request = "GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n";
    open.push_back(ask(request));
    if (kind == 3) open.back().hang_up();
    if (drawn(3) == 0)
      for (HttpWire& wire : std::exchange(open, {}))
        if (wire.fd() >= 0) wire.answer();
  }
  for (HttpWire& wire : open)
    if (wire.fd() >= 0) wire.answer();
  open.clear();
  EXPECT_TRUE(comes_true([&] { return server_->connections() == 0; }));
  const std::vector<HttpAccess> all = accesses(kRequests / 2);
  int computed = 0;
  for (const HttpAccess& access : all) {
    expect_whole(access);
    if (time_in(access, "decode").count() > 0) ++computed;
  }
  EXPECT_GT(computed, 5) << "seed " << test_seed();
}

TEST_F(EverySecondNamed, a_held_up_request_says_where) {
  start({.slots = 1, .encoding = [] { std::this_thread::sleep_for(kHeld); }});
  const auto engine = brake();
  HttpWire waits = queue(completion(R"(, "max_tokens": 8)"));
  std::this_thread::sleep_for(kHeld);
  engine->pass(2);
  ASSERT_EQ(status_of(waits.answer()), 200);
  const HttpAccess access = accesses(1).back();
  expect_whole(access);
  EXPECT_GE(time_in(access, kEncode), kHeld);
  EXPECT_GE(time_in(access, "queue"), kHeld);
  for (const char* part : {"receive", "turn", "prefill", "decode", "wait", "sample", "send"})
    EXPECT_GT(time_in(access, part).count(), 0) << part;
}

TEST_F(EverySecondNamed, a_request_beside_another_waits_for_its_computation) {
  start({.slots = 2});
  const auto engine = brake(3);
  HttpWire beside = queue(completion(R"(, "max_tokens": 8)"));
  engine->pass(1);
  ASSERT_TRUE(engine->holds(2)) << "in a step that began the other";
  std::this_thread::sleep_for(kHeld);
  engine->pass(3);
  ASSERT_EQ(status_of(beside.answer()), 200);
  const HttpAccess access = accesses(1).back();
  expect_whole(access);
  EXPECT_GE(time_in(access, "wait"), kHeld);
}

}  // namespace
}  // namespace systole
