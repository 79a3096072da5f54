#include "operate/run/rolling_restart.h"

#include <gtest/gtest.h>

#include "ground/base/clock.h"

namespace systole {
namespace {

using enum RollingStep;

constexpr RollingSeen kLoads{}, kServes{.new_serves = true}, kHasEnded{.new_has_ended = true};
constexpr RollingSeen kOldServes{.new_serves = true, .old_lives = true, .under_way = 2};
constexpr RollingSeen kOldIsIdle{.new_serves = true, .old_lives = true};

class RollingRestartTest : public testing::Test {
 protected:
  RollingStep after(double seconds, const RollingSeen& seen) {
    clock_.advance(Seconds(seconds));
    return restart_.next(clock_.now(), seen);
  }
  FakeClock clock_;
  RollingRestart restart_{2, Seconds(60.0), Seconds(30.0)};
};

TEST_F(RollingRestartTest, replaces_one_after_the_other_and_each_drains_before_it_ends) {
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(restart_.is_over());
    EXPECT_EQ(restart_.at(), i);
    EXPECT_EQ(after(100, kLoads), start) << "the budget is of each";
    EXPECT_EQ(after(59, kLoads), wait);
    EXPECT_EQ(after(0.5, kServes), adopt);
    EXPECT_EQ(after(29, kOldServes), wait);
    EXPECT_EQ(after(0.5, kOldIsIdle), stop);
    EXPECT_EQ(after(29, kOldIsIdle), wait);
    EXPECT_EQ(after(0.5, kServes), next);
  }
  EXPECT_TRUE(restart_.is_over());
  EXPECT_EQ(after(1000, kServes), wait) << "for ever";
}

TEST_F(RollingRestartTest, a_new_one_that_is_late_or_ends_is_the_last) {
  EXPECT_EQ(after(0, kLoads), start);
  EXPECT_EQ(after(60, kServes), adopt) << "it serves, if only just";
  EXPECT_EQ(after(0, kServes), next) << "there was no old one";
  EXPECT_EQ(after(0, kLoads), start);
  EXPECT_EQ(after(60, kLoads), fail);
  EXPECT_TRUE(restart_.is_over());
  EXPECT_EQ(restart_.at(), 1);

  RollingRestart other{2, Seconds(60.0), Seconds(30.0)};
  EXPECT_EQ(other.next(clock_.now(), kLoads), start);
  EXPECT_EQ(other.next(clock_.now(), kHasEnded), fail);
  EXPECT_TRUE(other.is_over());
}

TEST_F(RollingRestartTest, an_old_one_whose_requests_do_not_end_has_its_grace_twice) {
  EXPECT_EQ(after(0, kLoads), start);
  EXPECT_EQ(after(1, kServes), adopt);
  EXPECT_EQ(after(30, kOldServes), stop);
  EXPECT_EQ(after(29, kOldServes), wait);
  EXPECT_EQ(after(1, kOldServes), kill);
  EXPECT_EQ(after(1, kOldServes), wait) << "it is killed once";
  EXPECT_EQ(after(1, kServes), next);
  EXPECT_EQ(restart_.at(), 1);
}

}  // namespace
}  // namespace systole
