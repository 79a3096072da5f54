#pragma once
// A summary of prediction errors, predicted / measured - 1.

#include <cstddef>
#include <vector>

namespace systole::backtest {

struct ErrorSummary {
  std::size_t rows = 0;
  double mean = 0;  // above 0: predictions are too high
  double mean_abs = 0, median_abs = 0, p90_abs = 0;
  double within_15 = 0;  // fraction of rows
};

// All zeros without errors.
ErrorSummary summary_of(std::vector<double> errors);

// The q-quantile, interpolated linearly between two values. REQUIRES: sorted, not empty.
double quantile(const std::vector<double>& sorted, double q);

// Spearman's rank correlation; equal values share the mean of their ranks. 0 if all values of `a` or of `b` are equal.
// REQUIRES: of equal size.
double rank_correlation(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace systole::backtest
