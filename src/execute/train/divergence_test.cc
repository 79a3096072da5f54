#include "execute/train/divergence.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

TrainSpec defaults() {
  TrainSpec train;
  train.divergence_factor = 3;
  train.divergence_skips = 10;
  return train;
}

std::optional<std::string> told(double loss, const LossHistory& losses, const TrainSpec& train = defaults()) {
  StepEnded step;
  step.step = 665;
  step.loss = loss;
  return divergence_of(train, step, losses);
}

TEST(Divergence, IsALossFarAboveTheLowestAndOnItsWayBackToTheFirst) {
  EXPECT_TRUE(told(9.1, {.first = 10.8, .lowest = 3}));
  EXPECT_FALSE(told(8.9, {.first = 10.8, .lowest = 3}));
  EXPECT_TRUE(told(9.1, {.first = 10.8, .lowest = 3})
                  ->starts_with("diverged at step 665: the loss is 9.1, the lowest was 3; try\n  1. "));
  EXPECT_TRUE(told(40, {.first = 10.8, .lowest = 10}));
  EXPECT_FALSE(told(30, {})) << "the first step";
}

// Losses of a small T5 that had learned its pairs well, batch by batch.
TEST(Divergence, IsNotTheNoiseOfALossThatHasBecomeSmall) {
  EXPECT_FALSE(told(0.2599, {.first = 6.3, .lowest = 0.08574}));
  EXPECT_FALSE(told(0.0056, {.first = 6.3, .lowest = 0.0006}));
  EXPECT_TRUE(told(2.2, {.first = 6.3, .lowest = 0.0006}));
}

TEST(Divergence, IsAsTheWorkloadHasIt) {
  TrainSpec train = defaults();
  train.divergence_factor = 0;
  EXPECT_FALSE(told(100, {.first = 6, .lowest = 1}, train));
  EXPECT_TRUE(told(1, {.first = 6, .lowest = 1, .skips = 10}, train));
  EXPECT_FALSE(told(1, {.first = 6, .lowest = 1, .skips = 9}, train));
  train.on_divergence = TrainSpec::OnDivergence::ignore;
  EXPECT_FALSE(told(1, {.first = 6, .lowest = 1, .skips = 10}, train));
}

}  // namespace
}  // namespace systole
