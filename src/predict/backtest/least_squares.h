#pragma once
// The least sum of squares within bounds, by Levenberg's and Marquardt's method (Marquardt, "An algorithm for
// least-squares estimation of nonlinear parameters", 1963) with derivatives by small steps. For a dozen unknowns and
// thousands of residuals; deterministic.

#include <functional>
#include <span>
#include <vector>

namespace systole::backtest {

struct LeastSquares {
  // As many numbers whatever the unknowns are.
  std::function<std::vector<double>(std::span<const double> x)> residuals;
  std::vector<double> least, most;  // bounds of each unknown
  int most_steps = 60;
  double enough = 1e-7;  // a step that makes the sum less by no larger share is the last
};

double sum_of_squares(std::span<const double> values);

// REQUIRES: `start` as long as the bounds. An unknown at a bound stays there while the sum falls beyond it.
std::vector<double> minimise(const LeastSquares& problem, std::vector<double> start);

}  // namespace systole::backtest
