// By hand.

#include "execute/serve/eval/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace systole {
namespace {

TEST(EvalStatistics, of_a_mean_are_the_sample_deviation_over_the_root_of_n) {
  const MetricEstimate acc = estimate(mean_metric("acc", std::vector<double>{1, 0, 1, 1}));
  EXPECT_DOUBLE_EQ(acc.value, 0.75);
  EXPECT_DOUBLE_EQ(acc.standard_error.value(), 0.25);  // √(0.75 / 3) / √4
  EXPECT_NEAR(acc.low(), 0.75 - 0.49, 1e-5);
  EXPECT_NEAR(acc.high(), 0.75 + 0.49, 1e-5);
  // A binomial's: √(p (1 - p) / (n - 1)).
  std::vector<double> many(100, 0);
  std::fill_n(many.begin(), 71, 1);
  EXPECT_NEAR(estimate(mean_metric("acc", many)).standard_error.value(), std::sqrt(0.71 * 0.29 / 99), 1e-15);
  EXPECT_FALSE(estimate(mean_metric("acc", std::vector<double>{1})).standard_error);
  EXPECT_EQ(estimate(mean_metric("acc", std::vector<double>{1, 1})).standard_error, 0.0);
}

TEST(EvalStatistics, of_a_ratio_are_the_delta_method) {
  const Metric ratio = ratio_metric("bits", std::vector<double>{2, 4}, std::vector<double>{1, 3});
  EXPECT_DOUBLE_EQ(ratio.value, 1.5);
  EXPECT_EQ(ratio.influence, (std::vector<double>{0.25, -0.25}));  // (2 - 1.5) / 2, (4 - 4.5) / 2
  EXPECT_DOUBLE_EQ(estimate(ratio).standard_error.value(), 0.25);
  EXPECT_DOUBLE_EQ(estimate(scaled("twice", ratio, 2)).value, 3);
  EXPECT_DOUBLE_EQ(estimate(scaled("twice", ratio, 2)).standard_error.value(), 0.5);
  const Metric perplexity = exponential("perplexity", ratio);
  EXPECT_DOUBLE_EQ(perplexity.value, std::exp(1.5));
  EXPECT_DOUBLE_EQ(estimate(perplexity).standard_error.value(), 0.25 * std::exp(1.5));
}

TEST(EvalStatistics, of_a_difference_are_paired) {
  const Metric a = mean_metric("acc", std::vector<double>{1, 1, 0, 1}),
               b = mean_metric("acc", std::vector<double>{0, 1, 0, 1});
  const MetricEstimate d = difference(a, b);
  EXPECT_DOUBLE_EQ(d.value, 0.25);
  EXPECT_DOUBLE_EQ(d.standard_error.value(), 0.25);  // of 1, 0, 0, 0; unpaired it would be 0.38
  EXPECT_EQ(difference(a, a).value, 0);
  EXPECT_EQ(difference(a, a).standard_error, 0.0);
}

}  // namespace
}  // namespace systole
