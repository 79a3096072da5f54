#include "predict/backtest/least_squares.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace systole::backtest {
namespace {

using Matrix = std::vector<std::vector<double>>;

// The Jacobian, by columns. A step goes inwards if the bound leaves no room outwards.
Matrix derivatives(const LeastSquares& problem, std::span<const double> x, std::span<const double> at_x) {
  constexpr double kStep = 1e-4;
  Matrix columns;
  std::vector<double> moved(x.begin(), x.end());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double step = x[i] + kStep <= problem.most[i] ? kStep : -kStep;
    moved[i] = x[i] + step;
    std::vector<double> column = problem.residuals(moved);
    moved[i] = x[i];
    for (std::size_t r = 0; r < column.size(); ++r) column[r] = (column[r] - at_x[r]) / step;
    columns.push_back(std::move(column));
  }
  return columns;
}

// Solves a x = b for a symmetric positive definite `a`, by Cholesky's method.
std::vector<double> solve(Matrix a, std::vector<double> b) {
  const std::size_t n = b.size();
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = a[i][j];
      for (std::size_t k = 0; k < j; ++k) sum -= a[i][k] * a[j][k];
      a[i][j] = i == j ? std::sqrt(std::max(sum, 1e-300)) : sum / a[j][j];
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < i; ++k) b[i] -= a[i][k] * b[k];
    b[i] /= a[i][i];
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) b[i] -= a[k][i] * b[k];
    b[i] /= a[i][i];
  }
  return b;
}

// The normal equations at a point. Unknowns at a bound that would go beyond it are held.
struct Normal {
  Matrix squares;
  std::vector<double> down;  // descent direction: negative half gradient of the sum
};

Normal normal_equations(const LeastSquares& problem, std::span<const double> x, std::span<const double> residuals) {
  const Matrix columns = derivatives(problem, x, residuals);
  const std::size_t n = x.size();
  Normal normal{Matrix(n, std::vector<double>(n, 0)), std::vector<double>(n, 0)};
  for (std::size_t i = 0; i < n; ++i)
    normal.down[i] = -std::inner_product(columns[i].begin(), columns[i].end(), residuals.begin(), 0.0);
  const auto held = [&](std::size_t i) {
    return (x[i] <= problem.least[i] && normal.down[i] < 0) || (x[i] >= problem.most[i] && normal.down[i] > 0);
  };
  std::vector<bool> holds(n);
  for (std::size_t i = 0; i < n; ++i) holds[i] = held(i);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      if (holds[i] || holds[j])
        normal.squares[i][j] = i == j ? 1 : 0;
      else
        normal.squares[i][j] = std::inner_product(columns[i].begin(), columns[i].end(), columns[j].begin(), 0.0);
    }
    if (holds[i]) normal.down[i] = 0;
  }
  return normal;
}

}  // namespace

double sum_of_squares(std::span<const double> values) {
  return std::inner_product(values.begin(), values.end(), values.begin(), 0.0);
}

std::vector<double> minimise(const LeastSquares& problem, std::vector<double> x) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::clamp(x[i], problem.least[i], problem.most[i]);
  std::vector<double> residuals = problem.residuals(x);
  double sum = sum_of_squares(residuals), damping = 1e-2;
  for (int step = 0; step < problem.most_steps; ++step) {
    const Normal normal = normal_equations(problem, x, residuals);
    bool better = false;
    for (int tries = 0; tries < 12 && !better; ++tries) {
      Matrix damped = normal.squares;
      for (std::size_t i = 0; i < x.size(); ++i) damped[i][i] += damping * damped[i][i] + 1e-12;
      const std::vector<double> move = solve(std::move(damped), normal.down);
      std::vector<double> next = x;
      for (std::size_t i = 0; i < x.size(); ++i)
        next[i] = std::clamp(x[i] + move[i], problem.least[i], problem.most[i]);
      std::vector<double> there = problem.residuals(next);
      const double less = sum_of_squares(there);
      better = less < sum;
      if (!better) {
        damping *= 4;
        continue;
      }
      const double gained = (sum - less) / sum;
      x = std::move(next);
      residuals = std::move(there);
      sum = less;
      damping = std::max(damping / 4, 1e-9);
      if (gained < problem.enough) return x;
    }
    if (!better) return x;
  }
  return x;
}

}  // namespace systole::backtest
