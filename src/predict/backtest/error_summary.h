#pragma once
// Errors of predictions, predicted / measured - 1, in a few figures.

#include <cstddef>
#include <vector>

namespace systole::backtest {

struct ErrorSummary {
  std::size_t rows = 0;
  double mean = 0;  // above 0: predicted too much
  double mean_abs = 0, median_abs = 0, p90_abs = 0;
  double within_15 = 0;  // share of rows
};

// All zeros without errors.
ErrorSummary summary_of(std::vector<double> errors);

// With as many values below it as q says, between two of them in proportion. REQUIRES: sorted, not empty.
double quantile(const std::vector<double>& sorted, double q);

// Spearman's: of ranks, equal values sharing the mean of theirs. 0 where all of one are equal. REQUIRES: of equal size.
double rank_correlation(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace systole::backtest
