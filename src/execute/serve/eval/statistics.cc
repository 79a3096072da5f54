#include "execute/serve/eval/statistics.h"

#include <cmath>
#include <numeric>

#include "ground/base/error.h"

namespace systole {
namespace {

double sum_of(std::span<const double> values) { return std::accumulate(values.begin(), values.end(), 0.0); }

}  // namespace

Metric mean_metric(std::string name, std::span<const double> values) {
  return ratio_metric(std::move(name), values, std::vector<double>(values.size(), 1.0));
}

Metric ratio_metric(std::string name, std::span<const double> amounts, std::span<const double> units) {
  CHECK(!amounts.empty() && amounts.size() == units.size(), "{} amounts of {} items", amounts.size(), units.size());
  const double all = sum_of(units), mean_unit = all / static_cast<double>(units.size());
  Metric metric{std::move(name), sum_of(amounts) / all};
  for (std::size_t i = 0; i < amounts.size(); ++i)
    metric.influence.push_back((amounts[i] - metric.value * units[i]) / mean_unit);
  return metric;
}

Metric scaled(std::string name, const Metric& metric, double factor) {
  Metric made{std::move(name), metric.value * factor};
  for (const double one : metric.influence) made.influence.push_back(one * factor);
  return made;
}

Metric exponential(std::string name, const Metric& metric) {
  const double value = std::exp(metric.value);
  Metric made = scaled(std::move(name), metric, value);  // the derivative of e^x
  made.value = value;
  return made;
}

MetricEstimate estimate(const Metric& metric) {
  const auto n = static_cast<double>(metric.influence.size());
  MetricEstimate made{.value = metric.value};
  if (n < 2) return made;
  double squares = 0;
  for (const double one : metric.influence) squares += one * one;
  made.standard_error = std::sqrt(squares / (n - 1) / n);
  return made;
}

MetricEstimate difference(const Metric& a, const Metric& b) {
  CHECK(a.influence.size() == b.influence.size(), "{} and {} items", a.influence.size(), b.influence.size());
  Metric made{a.name, a.value - b.value};
  for (std::size_t i = 0; i < a.influence.size(); ++i) made.influence.push_back(a.influence[i] - b.influence[i]);
  return estimate(made);
}

}  // namespace systole
