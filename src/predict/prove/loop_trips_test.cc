#include "predict/prove/loop_trips.h"

#include <gtest/gtest.h>

#include "predict/prove/testing/hlo_builder.h"

namespace systole::prove {
namespace {

// for (i = begin; i DIRECTION limit; i += step), beside a value that is unknown.
struct Loop {
  std::int64_t begin = 0, limit = 10, step = 1;
  const char* direction = "LT";
  bool fused = false;    // the step is in a fusion
  bool carried = false;  // the limit is carried, not a constant of the condition
  bool data = false;     // the limit comes from the unknown value

  std::optional<std::int64_t> trips() const {
    HloBuilder b;
    const std::int64_t adds = b.computation();
    {
      const std::int64_t i = b.parameter(0), by = b.constant(step);
      b.add("add", {i, by});
    }
    const std::int64_t body = b.computation();
    {
      const std::int64_t p = b.parameter(), i = b.part(p, 1), x = b.part(p, 0), limit_now = b.part(p, 2);
      const std::int64_t next = fused ? b.call("fusion", {i}, {adds}) : b.add("add", {i, b.constant(step)});
      const std::int64_t same = b.add("copy", {limit_now});
      b.add("tuple", {x, next, same});
    }
    const std::int64_t condition = b.computation();
    {
      const std::int64_t p = b.parameter(), i = b.part(p, 1);
      b.compare(direction, i, data ? b.part(p, 0) : carried ? b.part(p, 2) : b.constant(limit));
    }
    b.computation();
    const std::int64_t x = b.parameter(), i = b.constant(begin), end = b.constant(limit);
    const std::int64_t init = b.add("tuple", {x, b.add("copy", {i}), end});
    const std::int64_t loop = b.call("while", {init}, {body, condition});
    const pjrt::HloModule& module = b.done();
    const HloLookup lookup(module);
    return loop_trips(lookup, *lookup.instruction(loop));
  }
};

TEST(LoopTrips, are_played) {
  EXPECT_EQ(Loop().trips(), 10);
  EXPECT_EQ((Loop{.begin = 1}).trips(), 9) << "peeled";
  EXPECT_EQ((Loop{.limit = 9, .step = 2}).trips(), 5) << "a windowed product";
  EXPECT_EQ((Loop{.begin = 9, .limit = 0, .step = -1, .direction = "GE"}).trips(), 10);
  EXPECT_EQ((Loop{.direction = "LE"}).trips(), 11);
  EXPECT_EQ((Loop{.direction = "NE"}).trips(), 10);
  EXPECT_EQ((Loop{.begin = 10}).trips(), 0);
  EXPECT_EQ((Loop{.fused = true}).trips(), 10);
  EXPECT_EQ((Loop{.carried = true}).trips(), 10);
}

TEST(LoopTrips, that_cannot_be_known_are_not) {
  EXPECT_FALSE((Loop{.data = true}).trips());
  EXPECT_FALSE((Loop{.step = 0}).trips()) << "without end";
  EXPECT_FALSE((Loop{.step = -1}).trips());
  EXPECT_FALSE((Loop{.limit = std::int64_t{1} << 40}).trips()) << "more than anyone would write";
  EXPECT_FALSE((Loop{.direction = "??"}).trips());
}

// x + x, and the sum of that with itself, …: nested expressions are not followed forever.
TEST(LoopTrips, of_hostile_modules_end) {
  HloBuilder b;
  const std::int64_t body = b.computation();
  std::int64_t i = b.part(b.parameter(), 0);
  for (int n = 0; n < 60; ++n) i = b.add("add", {i, i});
  b.add("tuple", {i});
  const std::int64_t condition = b.computation();
  const std::int64_t p = b.parameter(), at = b.part(p, 0);
  b.compare("LT", at, b.constant(5));
  b.computation();
  const std::int64_t loop = b.call("while", {b.add("tuple", {b.constant(1)})}, {body, condition});
  const pjrt::HloModule& module = b.done();
  const HloLookup lookup(module);
  EXPECT_FALSE(loop_trips(lookup, *lookup.instruction(loop)));
}

}  // namespace
}  // namespace systole::prove
