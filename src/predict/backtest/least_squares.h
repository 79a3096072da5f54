#pragma once
// Bounded nonlinear least squares by the Levenberg-Marquardt method (Marquardt, "An algorithm for least-squares
// estimation of nonlinear parameters", 1963) with numerical derivatives. For a dozen unknowns and thousands of
// residuals; deterministic.

#include <functional>
#include <span>
#include <vector>

namespace systole::backtest {

struct LeastSquares {
  // Always the same number of residuals.
  std::function<std::vector<double>(std::span<const double> x)> residuals;
  std::vector<double> least, most;  // bounds of each unknown
  int most_steps = 60;
  double enough = 1e-7;  // stop if a step reduces the sum by a smaller fraction
};

double sum_of_squares(std::span<const double> values);

// REQUIRES: `start` is as long as the bounds. An unknown at a bound stays there while the sum falls beyond the bound.
std::vector<double> minimise(const LeastSquares& problem, std::vector<double> start);

}  // namespace systole::backtest
