#include "operate/observe/stalls.h"

#include <gtest/gtest.h>

#include <vector>

namespace systole {
namespace {

// 100 steps of 10 ms of compute and 1 ms of waiting; every `every`-th waits 50 ms more.
std::vector<StepEnded> steps(int every) {
  std::vector<StepEnded> all;
  for (int i = 1; i <= 100; ++i) {
    StepEnded step;
    step.step = i;
    step.seconds[Category::compute] = Seconds(0.010);
    step.seconds[Category::data_wait] = Seconds(i % every == 0 ? 0.051 + 1e-4 * i : 0.001);
    all.push_back(step);
  }
  return all;
}

TEST(Stalls, are_found_in_their_own_category) {
  const auto found = find_stalls(steps(4), Category::data_wait);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->steps, 25);
  EXPECT_EQ(found->of, 100);
  EXPECT_EQ(found->longest_step, 100);
  EXPECT_NEAR(found->took.count(), 25 * 0.050 + 1e-4 * 1300, 1e-9);
  EXPECT_FALSE(find_stalls(steps(4), Category::compute).has_value());
}

TEST(Stalls, what_always_takes_long_is_no_stall) {
  EXPECT_FALSE(find_stalls(steps(1), Category::data_wait).has_value());
  EXPECT_FALSE(find_stalls(steps(1000), Category::data_wait).has_value());
  EXPECT_FALSE(find_stalls({}, Category::data_wait).has_value());
}

TEST(Stalls, less_than_a_hundredth_of_the_time_is_not_told) {
  std::vector<StepEnded> all = steps(1000);
  all[7].seconds[Category::logging] = Seconds(0.010);  // of 1.1 s in total
  EXPECT_FALSE(find_stalls(all, Category::logging).has_value());
  all[7].seconds[Category::logging] = Seconds(0.020);
  EXPECT_TRUE(find_stalls(all, Category::logging).has_value());
}

}  // namespace
}  // namespace systole
