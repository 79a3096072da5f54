#pragma once
// Fits the numbers of stack profiles to published rows.
//
// For each stack, the numbers minimise
//
//   sum over rows of weight × soft(ln(predicted / measured) / 5%)  +  sum over numbers of z^2
//
// where soft(r) = 2 (√(1 + r²) - 1) limits the pull of outliers, and z is the distance of a number from its default in
// StackProfile, in units of its spread (stack_numbers()). Rows are step times and memory peaks. A source counts as at
// most kMostOfSource rows; rows with a defect do not count. The method is Levenberg-Marquardt, from the defaults and
// from the present numbers; the same rows give the same numbers.

#include "predict/backtest/scores.h"

namespace systole::backtest {

constexpr double kMostOfSource = 30;

// Changes only the numbers of `stack`; the search starts from these, and from the defaults. REQUIRES: every row has a
// job.
StackProfile fit_stack(std::span<const PreparedRow* const> rows, const StackProfile& stack);

// Fits all stacks to all rows that count. A stack without rows stays unchanged; "default" gets the medians of the
// others.
std::vector<StackProfile> fit_stacks(std::span<const PreparedRow> rows, std::span<const StackProfile> stacks);

// Profiles to validate a fit, leaving one source out: a row's profile is fitted without the rows of its source. If a
// stack has only one source, its rows get the medians of the other stacks.
class SourcesLeftOut {
 public:
  SourcesLeftOut(std::span<const PreparedRow> rows, std::span<const StackProfile> fitted);
  const StackProfile& operator()(const PreparedRow& row) const;

 private:
  std::map<std::pair<std::string, std::string>, StackProfile> profiles_;  // by stack and source
};

// Profiles to validate a fit, leaving one stack out: a row's profile is the median of the other stacks.
class StacksUnseen {
 public:
  explicit StacksUnseen(std::span<const StackProfile> fitted);
  const StackProfile& operator()(const PreparedRow& row) const;

 private:
  std::map<std::string, StackProfile> profiles_;  // by stack
};

// The medians of the numbers of all stacks but `of` and "default"; facts are those of `of`.
StackProfile median_of_others(std::span<const StackProfile> stacks, const StackProfile& of);

}  // namespace systole::backtest
