#include "predict/backtest/error_summary.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ground/base/error.h"

namespace systole::backtest {
namespace {

std::vector<double> ranks_of(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return values[i]; });
  std::vector<double> ranks(values.size());
  for (std::size_t first = 0; first < order.size();) {
    std::size_t end = first;
    while (end < order.size() && values[order[end]] == values[order[first]]) ++end;
    for (std::size_t i = first; i < end; ++i) ranks[order[i]] = static_cast<double>(first + end - 1) / 2;
    first = end;
  }
  return ranks;
}

}  // namespace

double quantile(const std::vector<double>& sorted, double q) {
  CHECK(!sorted.empty(), "a quantile of nothing");
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

ErrorSummary summary_of(std::vector<double> errors) {
  ErrorSummary summary;
  summary.rows = errors.size();
  if (errors.empty()) return summary;
  const auto count = static_cast<double>(errors.size());
  summary.mean = std::accumulate(errors.begin(), errors.end(), 0.0) / count;
  for (double& error : errors) error = std::abs(error);
  std::ranges::sort(errors);
  summary.mean_abs = std::accumulate(errors.begin(), errors.end(), 0.0) / count;
  summary.median_abs = quantile(errors, 0.5);
  summary.p90_abs = quantile(errors, 0.9);
  summary.within_15 = static_cast<double>(std::ranges::upper_bound(errors, 0.15) - errors.begin()) / count;
  return summary;
}

double rank_correlation(const std::vector<double>& a, const std::vector<double>& b) {
  CHECK(a.size() == b.size(), "{} values beside {}", a.size(), b.size());
  const std::vector<double> of_a = ranks_of(a), of_b = ranks_of(b);
  const double middle = (static_cast<double>(a.size()) - 1) / 2;
  double both = 0, squares_a = 0, squares_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    both += (of_a[i] - middle) * (of_b[i] - middle);
    squares_a += (of_a[i] - middle) * (of_a[i] - middle);
    squares_b += (of_b[i] - middle) * (of_b[i] - middle);
  }
  return squares_a == 0 || squares_b == 0 ? 0 : both / std::sqrt(squares_a * squares_b);
}

}  // namespace systole::backtest
