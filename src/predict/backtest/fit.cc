#include "predict/backtest/fit.h"

#include <algorithm>
#include <cmath>

#include "predict/backtest/least_squares.h"
#include "predict/backtest/row_sets.h"

namespace systole::backtest {
namespace {

constexpr double kScale = 0.05;        // a typical error
constexpr double kFaultyWeight = 0.1;  // of rows measured before a repair

// The distance of a number from its expected value, in spreads; decoded() is the inverse.
double encoded(double value, const StackNumber& number, const StackProfile& expected) {
  const double middle = expected.*number.member;
  return (number.log ? std::log(value / middle) : value - middle) / number.spread;
}
double decoded(double z, const StackNumber& number, const StackProfile& expected) {
  const double middle = expected.*number.member;
  const double value = number.log ? middle * std::exp(z * number.spread) : middle + z * number.spread;
  return std::clamp(value, number.least, number.most);
}

StackProfile profile_at(std::span<const double> z, const StackProfile& expected) {
  StackProfile stack = expected;
  const std::span<const StackNumber> numbers = stack_numbers();
  for (std::size_t i = 0; i < numbers.size(); ++i) stack.*numbers[i].member = decoded(z[i], numbers[i], expected);
  return stack;
}

// The square of the result is soft(r).
double softened(double r) { return std::copysign(std::sqrt(2 * (std::sqrt(1 + r * r) - 1)), r); }

struct WeighedRow {
  const PreparedRow* row = nullptr;
  double root_weight = 1;
};

std::vector<WeighedRow> weighed(std::span<const PreparedRow* const> rows) {
  std::map<std::string, double> of_source;
  for (const PreparedRow* row : rows) of_source[row->row.source] += 1;
  std::vector<WeighedRow> result;
  for (const PreparedRow* row : rows) {
    const double fault = before_a_repair(row->row) ? kFaultyWeight : 1;
    result.push_back({row, std::sqrt(std::min(1.0, kMostOfSource / of_source[row->row.source]) * fault)});
  }
  return result;
}

void add_residuals(const WeighedRow& of, const StackProfile& stack, std::vector<double>& residuals) {
  const PublishedRow& row = of.row->row;
  if (row.step_seconds) {
    const double seconds = step_time(of.row->made->parts, stack).seconds;
    residuals.push_back(of.root_weight * softened(std::log(seconds / *row.step_seconds) / kScale));
  }
  if (row.memory_gib) {
    const double gib = predicted_gib(*of.row, stack);
    residuals.push_back(of.root_weight * softened(std::log(gib / *row.memory_gib) / kScale));
  }
}

bool counts(const PreparedRow& row) {
  return row.made != nullptr && (row.row.step_seconds || row.row.memory_gib) && defect_of(row).empty();
}

std::vector<const PreparedRow*> rows_of(std::span<const PreparedRow> rows, const std::string& stack) {
  std::vector<const PreparedRow*> of_stack;
  for (const PreparedRow& row : rows)
    if (row.stack->name == stack && counts(row)) of_stack.push_back(&row);
  return of_stack;
}

// The default numbers with the facts of `stack`.
StackProfile expected_of(const StackProfile& stack) {
  StackProfile expected = stack;
  const StackProfile any;
  for (const StackNumber& number : stack_numbers()) expected.*number.member = any.*number.member;
  return expected;
}

}  // namespace

StackProfile fit_stack(std::span<const PreparedRow* const> rows, const StackProfile& stack) {
  const StackProfile expected = expected_of(stack);
  const std::vector<WeighedRow> all = weighed(rows);
  const std::span<const StackNumber> numbers = stack_numbers();
  LeastSquares problem;
  for (const StackNumber& number : numbers) {
    problem.least.push_back(number.least > 0 || !number.log ? encoded(number.least, number, expected) : -20);
    problem.most.push_back(encoded(number.most, number, expected));
  }
  problem.residuals = [&](std::span<const double> z) {
    const StackProfile tried = profile_at(z, expected);
    std::vector<double> residuals(z.begin(), z.end());
    for (const WeighedRow& row : all) add_residuals(row, tried, residuals);
    return residuals;
  };
  // Starts from the expected and from the present numbers, because the sum has several local minima.
  std::vector<double> standing;
  for (const StackNumber& number : numbers) standing.push_back(encoded(stack.*number.member, number, expected));
  std::vector<double> best;
  double least = 0;
  for (const std::vector<double>& start : {std::vector<double>(numbers.size(), 0), standing}) {
    std::vector<double> found = minimise(problem, start);
    const double sum = sum_of_squares(problem.residuals(found));
    if (best.empty() || sum < least) best = std::move(found), least = sum;
  }
  return profile_at(best, expected);
}

StackProfile median_of_others(std::span<const StackProfile> stacks, const StackProfile& of) {
  StackProfile median = of;
  for (const StackNumber& number : stack_numbers()) {
    std::vector<double> values;
    for (const StackProfile& stack : stacks)
      if (stack.name != of.name && stack.name != "default") values.push_back(stack.*number.member);
    std::ranges::sort(values);
    if (!values.empty()) median.*number.member = quantile(values, 0.5);
  }
  return median;
}

std::vector<StackProfile> fit_stacks(std::span<const PreparedRow> rows, std::span<const StackProfile> stacks) {
  std::vector<StackProfile> fitted(stacks.begin(), stacks.end());
  for (StackProfile& stack : fitted) {
    const std::vector<const PreparedRow*> of_stack = rows_of(rows, stack.name);
    if (stack.name != "default" && !of_stack.empty()) stack = fit_stack(of_stack, stack);
  }
  for (StackProfile& stack : fitted)
    if (stack.name == "default") stack = median_of_others(fitted, stack);
  return fitted;
}

SourcesLeftOut::SourcesLeftOut(std::span<const PreparedRow> rows, std::span<const StackProfile> fitted) {
  for (const PreparedRow& row : rows) {
    const std::pair key(row.stack->name, row.row.source);
    if (profiles_.contains(key)) continue;
    const StackProfile& own = stack_of(fitted, row.stack->name);
    std::vector<const PreparedRow*> others = rows_of(rows, row.stack->name);
    std::erase_if(others, [&](const PreparedRow* other) { return other->row.source == row.row.source; });
    profiles_[key] = own.name == "default" ? own
                     : others.empty()      ? median_of_others(fitted, own)
                                           : fit_stack(others, own);
  }
}

StacksUnseen::StacksUnseen(std::span<const StackProfile> fitted) {
  for (const StackProfile& stack : fitted) profiles_[stack.name] = median_of_others(fitted, stack);
}

const StackProfile& StacksUnseen::operator()(const PreparedRow& row) const { return profiles_.at(row.stack->name); }

const StackProfile& SourcesLeftOut::operator()(const PreparedRow& row) const {
  return profiles_.at({row.stack->name, row.row.source});
}

}  // namespace systole::backtest
