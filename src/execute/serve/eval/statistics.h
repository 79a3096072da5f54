#pragma once
// Metrics over a sample of items, with what is needed for their standard errors and those of differences.
//
// A metric keeps each item's *influence*: how the metric would move if the item had more weight, times the number of
// items; they sum to 0. The standard error is the sample standard deviation of the influences over √n: of a mean that is
// the usual one (n - 1 in the deviation, as lm-evaluation-harness has it), of a ratio of sums the delta method's. The
// difference of two metrics over the same items has the differences of their influences (paired).

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace systole {

struct Metric {
  std::string name;
  double value = 0;
  std::vector<double> influence = {};  // of each item
};

// All functions: REQUIRES: at least one item.
Metric mean_metric(std::string name, std::span<const double> values);
// Σ amounts / Σ units; REQUIRES: units above 0.
Metric ratio_metric(std::string name, std::span<const double> amounts, std::span<const double> units);
Metric scaled(std::string name, const Metric& metric, double factor);
Metric exponential(std::string name, const Metric& metric);  // e^metric

struct MetricEstimate {
  double value = 0;
  std::optional<double> standard_error = {};  // nothing: a single item
  // The 95% confidence interval: 1.96 standard errors to both sides.
  double low() const { return value - kSides * standard_error.value_or(0); }
  double high() const { return value + kSides * standard_error.value_or(0); }

 private:
  static constexpr double kSides = 1.959963984540054;  // of the normal distribution, 97.5%
};

MetricEstimate estimate(const Metric& metric);
// a - b. REQUIRES: over the same items.
MetricEstimate difference(const Metric& a, const Metric& b);

}  // namespace systole
