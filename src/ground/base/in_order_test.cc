#include "ground/base/in_order.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

namespace systole {
namespace {

// Squares of 0, 1, 2, ... of which some take long.
struct Squares {
  explicit Squares(int threads) : units(ordered_slots(threads)) {}
  std::vector<int> units, used;
  int filled = 0, count = 40, fill_fails_at = -1, use_fails_at = -1, throws_at = -1;
  std::atomic<int> worked = 0;

  OrderedSteps steps() {
    return {[this](std::size_t slot) -> Result<bool> {
              if (filled == fill_fails_at) return error(ErrorKind::io, "no {}", filled);
              if (filled == count) return false;
              units[slot] = filled++;
              return true;
            },
            [this](std::size_t slot) {
              if (units[slot] == throws_at) throw std::runtime_error("thrown");
              if (units[slot] % 5 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
              units[slot] *= units[slot];
              ++worked;
            },
            [this](std::size_t slot) -> Status {
              if (units[slot] == use_fails_at) return error(ErrorKind::invalid, "not {}", units[slot]);
              used.push_back(units[slot]);
              return Done{};
            }};
  }
};

TEST(InOrderTest, UnitsAreUsedInTheOrderThatTheyWereFilled) {
  for (const int threads : {1, 2, 3, 8}) {
    Squares squares(threads);
    run_in_order(threads, squares.steps()).value();
    ASSERT_EQ(squares.used.size(), 40U) << threads;
    for (int i = 0; i < 40; ++i) ASSERT_EQ(squares.used[static_cast<std::size_t>(i)], i * i) << threads;
  }
}

TEST(InOrderTest, AnErrorOfAnyStepEndsIt) {
  for (const int threads : {1, 4}) {
    Squares unreadable(threads), unusable(threads), thrown(threads);
    unreadable.fill_fails_at = 17;
    EXPECT_EQ(run_in_order(threads, unreadable.steps()).error().message, "no 17");
    EXPECT_EQ(unreadable.used.size(), 17U) << "what was read before is used first, " << threads;
    unusable.use_fails_at = 25;
    EXPECT_EQ(run_in_order(threads, unusable.steps()).error().message, "not 25");
    EXPECT_EQ(unusable.used.size(), 5U) << threads;
    thrown.throws_at = 9;
    EXPECT_THROW((void)run_in_order(threads, thrown.steps()), std::runtime_error) << threads;
    EXPECT_LE(thrown.used.size(), 9U) << threads;
  }
}

}  // namespace
}  // namespace systole
