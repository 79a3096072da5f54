#include "execute/train/divergence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ground/base/philox.h"

namespace systole {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TrainSpec defaults() {
  TrainSpec train;
  train.divergence_factor = 3;
  train.divergence_skips = 10;
  return train;
}

LossTrend trend_of(const std::vector<double>& losses, double factor = 3) {
  LossTrend trend;
  for (const double loss : losses) trend.add(loss, factor);
  return trend;
}

// The number of losses of `rest` after which the run has diverged, starting with `before`; -1: never.
int steps_to_run_away(const std::vector<double>& before, const std::vector<double>& rest, double factor = 3) {
  LossTrend trend = trend_of(before, factor);
  EXPECT_FALSE(trend.ran_away());
  for (std::size_t i = 0; i < rest.size(); ++i) {
    trend.add(rest[i], factor);
    if (trend.ran_away()) return static_cast<int>(i) + 1;
  }
  return -1;
}

std::vector<double> often(double loss, std::size_t times) { return std::vector<double>(times, loss); }

std::vector<double> fallen(double from, double to) {
  std::vector<double> losses;
  for (int i = 0; i < 100; ++i) losses.push_back(to + (from - to) * std::exp(-i / 10.0));
  return losses;
}

// Mean square of `degrees` normal numbers, scaled to mean 1: the loss over that many targets of a model that has
// stopped learning.
std::vector<double> noise(int degrees, std::size_t losses, std::uint64_t key) {
  std::vector<double> all;
  for (std::uint64_t i = 0; i < losses; ++i) {
    double sum = 0;
    for (int d = 0; d < degrees; ++d) {
      const auto bits = philox(key, philox_counter(static_cast<std::uint64_t>(d), i));
      const double u = std::max(1e-9, static_cast<double>(uniform_f32(bits[0])));
      const double x =
          std::sqrt(-2 * std::log(u)) * std::cos(2 * std::acos(-1.0) * static_cast<double>(uniform_f32(bits[1])));
      sum += x * x;
    }
    all.push_back(sum / degrees);
  }
  return all;
}

// The noise of a loss over few targets is no divergence, however many steps. Compared with the lowest loss, the first
// of these would count as divergence within a hundred steps.
TEST(Divergence, IsNotTheNoiseOfASmallBatch) {
  for (const int degrees : {2, 4, 8, 16, 64}) {
    for (std::uint64_t key = 0; key < 20; ++key) {
      const LossTrend trend = trend_of(noise(degrees, 5000, key));
      EXPECT_FALSE(trend.ran_away()) << degrees << " " << key;
    }
    const std::vector<double> losses = noise(degrees, 5000, 1);
    const double lowest = *std::min_element(losses.begin(), losses.end());
    const double highest = *std::max_element(losses.begin(), losses.end());
    if (degrees <= 16) { EXPECT_GT(highest, 3 * lowest) << degrees; }
  }
}

// The same noise around a level that jumps or grows is detected, sooner if it is farther.
TEST(Divergence, IsALossThatStaysAwayWhateverItsNoise) {
  for (const int degrees : {2, 4, 8, 16, 64}) {
    for (std::uint64_t key = 0; key < 20; ++key) {
      const std::vector<double> before = noise(degrees, 500, key);
      for (const auto& [times, within] : {std::pair(8.0, 40), std::pair(30.0, 12), std::pair(1e5, 2)}) {
        std::vector<double> after = noise(degrees, 200, key + 100);
        for (double& loss : after) loss *= times;
        const int steps = steps_to_run_away(before, after);
        EXPECT_GT(steps, 0) << times << " " << degrees << " " << key;
        if (degrees >= 8) { EXPECT_LE(steps, within) << times << " " << degrees << " " << key; }
      }
      std::vector<double> growing = noise(degrees, 200, key + 200);
      for (std::size_t i = 0; i < growing.size(); ++i) growing[i] *= std::pow(1.1, i);
      EXPECT_GT(steps_to_run_away(before, growing), 0) << degrees << " " << key;
    }
  }
}

// Small losses may reach many times their level and recover, so the bound is at least a third of the first loss.
TEST(Divergence, IsOnItsWayBackToTheFirstLoss) {
  const std::vector<double> learned = fallen(10.8, 1);
  EXPECT_EQ(steps_to_run_away(learned, often(3.5, 1000)), -1);
  EXPECT_EQ(steps_to_run_away(learned, often(10.8, 1000)), 8) << "ln 1000 / ln 2.7 or so";
  EXPECT_EQ(steps_to_run_away(learned, {9, 9, 9, 9, 1, 9, 9, 9, 9, 1, 1, 1, 1, 9, 9, 9, 9}), -1) << "it came back";
  // Losses of a small T5 that had learned its pairs well, batch by batch.
  EXPECT_EQ(steps_to_run_away(fallen(6.3, 0.0006), often(0.2599, 1000)), -1);
  EXPECT_GT(steps_to_run_away(fallen(6.3, 0.0006), often(5, 100)), 0);
}

// In the first steps there is no level yet, but no run begins by growing tenfold.
TEST(Divergence, IsSeenFromTheFirstSteps) {
  EXPECT_EQ(steps_to_run_away({}, {1, 10, 100, 1e3, 1e4, 1e5, 1e6}), 4);
  EXPECT_EQ(steps_to_run_away({2, 1, 2, 1}, often(50, 100)), 5);
  EXPECT_EQ(steps_to_run_away({5}, {5000.0 * 3.1}), 1);
  EXPECT_EQ(steps_to_run_away({}, often(30, 100)), -1);
  EXPECT_EQ(steps_to_run_away({0.2}, often(1, 100)), -1) << "the first happened to be a low one";
  EXPECT_EQ(steps_to_run_away({0, 0, 0}, often(0, 100)), -1);
}

TEST(Divergence, KeepsItsTrendInACheckpoint) {
  std::vector<double> losses = fallen(10, 2);
  losses.insert(losses.end(), {kNan, 8, 9});
  const LossTrend trend = trend_of(losses);
  EXPECT_GT(trend.away, 0.0);
  const LossTrend read = trend_from(to_node(trend)).value();
  EXPECT_EQ(to_json(to_node(read)), to_json(to_node(trend)));
  EXPECT_EQ(read.away, trend.away);
  EXPECT_EQ(read.losses, LossTrend::kLevelSteps);
}

std::optional<std::string> told(const LossTrend& trend, std::int64_t skips = 0, const TrainSpec& train = defaults()) {
  StepEnded step;
  step.step = 665;
  step.loss = 1e6;
  return divergence_of(train, step, trend, skips);
}

TEST(Divergence, IsToldWithItsStepAndAsTheWorkloadHasIt) {
  const LossTrend away = trend_of({3, 3, 3, 3, 1e6}), steady = trend_of({3, 3, 3});
  EXPECT_TRUE(told(away)->starts_with("diverged at step 665: the loss is 1e+06, its lowest level was 3; try"));
  // Earlier losses that ran away do not change the reported level.
  EXPECT_TRUE(told(trend_of({3, 3, 3, 3, 90, 400, 1e6}))
                  ->starts_with("diverged at step 665: the loss is 1e+06, its lowest level was 3; try"));
  EXPECT_NE(told(away)->find("\n  1. "), std::string::npos);
  EXPECT_FALSE(told(steady));
  EXPECT_TRUE(told(steady, 10)->starts_with("diverged at step 665: the gradient of 10 steps in a row was not finite"));
  EXPECT_FALSE(told(steady, 9));
  TrainSpec train = defaults();
  train.divergence_factor = 0;
  EXPECT_FALSE(told(away, 0, train));
  EXPECT_FALSE(trend_of({3, 3, 3, 3, 1e6}, 0).ran_away());
  EXPECT_TRUE(told(steady, 10, train));
  train.on_divergence = TrainSpec::OnDivergence::ignore;
  EXPECT_FALSE(told(away, 10, train));
}

// If the run ends before a step is skipped, the evaluation or the last loss shows weights that are not finite.
TEST(Divergence, IsAHeldOutLossOrALastOneThatIsNoNumber) {
  TrainSpec train = defaults();
  for (const double loss : {kNan, -kNan, std::numeric_limits<double>::infinity()}) {
    const auto evaluated = divergence_of(train, Evaluated{.step = 4, .loss = loss});
    ASSERT_TRUE(evaluated);
    EXPECT_TRUE(evaluated->starts_with("diverged at step 4: the held-out loss is not a number")) << *evaluated;
    EXPECT_NE(evaluated->find("--eager"), std::string::npos) << *evaluated;
    EXPECT_TRUE(divergence_at_end(train, StepEnded{.step = 4, .loss = loss}));
  }
  EXPECT_FALSE(divergence_of(train, Evaluated{.step = 4, .loss = 1e9}));
  EXPECT_FALSE(divergence_at_end(train, StepEnded{.step = 4, .loss = 1e9, .skipped = true}));
  train.on_divergence = TrainSpec::OnDivergence::ignore;
  EXPECT_FALSE(divergence_of(train, Evaluated{.step = 4, .loss = kNan}));
  EXPECT_FALSE(divergence_at_end(train, StepEnded{.step = 4, .loss = kNan}));
}

}  // namespace
}  // namespace systole
