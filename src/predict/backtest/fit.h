#pragma once
// Finds the numbers of stack profiles on published rows.
//
// For each stack, the numbers that make
//
//   sum over rows of weight × soft(ln(predicted / measured) / 5%)  +  sum over numbers of z^2
//
// the least, where soft(r) = 2 (√(1 + r²) - 1), so that far-off rows pull no harder than others, and z is how far a
// number lies from what is expected of any stack (StackProfile's own), in spreads (stack_numbers()). Rows are step
// times and peaks of memory. A source counts as at most kMostOfSource rows; rows with a defect do not count. By
// Levenberg's and Marquardt's method, from what is expected; the same rows give the same numbers.

#include "predict/backtest/scores.h"

namespace systole::backtest {

constexpr double kMostOfSource = 30;

// REQUIRES: every row has a job. Only its numbers differ from `stack`'s, from which too the search begins.
StackProfile fit_stack(std::span<const PreparedRow* const> rows, const StackProfile& stack);

// All stacks on all rows that count. A stack without rows stays as it is; "default" gets the medians of the others.
std::vector<StackProfile> fit_stacks(std::span<const PreparedRow> rows, std::span<const StackProfile> stacks);

// Profiles for judging a fit: what each row is predicted by is fitted on none of its source's rows. The only source of
// a stack is predicted by the medians of the other stacks.
class SourcesLeftOut {
 public:
  SourcesLeftOut(std::span<const PreparedRow> rows, std::span<const StackProfile> fitted);
  const StackProfile& operator()(const PreparedRow& row) const;

 private:
  std::map<std::pair<std::string, std::string>, StackProfile> profiles_;  // by stack and source
};

// What each row is predicted by when its stack has never been seen.
class StacksUnseen {
 public:
  explicit StacksUnseen(std::span<const StackProfile> fitted);
  const StackProfile& operator()(const PreparedRow& row) const;

 private:
  std::map<std::string, StackProfile> profiles_;  // by stack
};

// The medians of all but one, as if that one had never been seen; facts are `of`'s.
StackProfile median_of_others(std::span<const StackProfile> stacks, const StackProfile& of);

}  // namespace systole::backtest
