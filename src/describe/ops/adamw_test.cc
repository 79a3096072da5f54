// Beyond the generic test: updates computed by hand, and `apply`.

#include <gtest/gtest.h>

#include <cmath>

#include "describe/ir/evaluate.h"
#include "describe/ops/ops.h"

namespace systole {
namespace {

const Type kOne(DType::f64, {1}), kScalar(DType::f64, {});

std::vector<double> adamw_step(double p, double g, double m, double v, double count, bool apply) {
  Graph graph("adamw");
  const Value parameter = graph.input("p", kOne), gradient = graph.input("g", kOne);
  const Value first = graph.input("m", kOne), second = graph.input("v", kOne);
  const Value updates = constant(graph, Type(DType::i32, {}), count);
  const Value guard = constant(graph, Type(DType::boolean, {}), apply ? 1 : 0);
  const Adamw next = adamw(parameter, gradient, first, second, constant(graph, kScalar, 0.5),
                           constant(graph, kScalar, 0.01), updates, guard, {0.9, 0.99, 1e-8, 0.1});
  graph.output("p", next.parameter);
  graph.output("m", next.m);
  graph.output("v", next.v);
  std::vector<HostTensor> inputs;
  for (const double value : {p, g, m, v}) inputs.emplace_back(DType::f64, Shape{1}, std::vector<double>{value});
  const std::vector<HostTensor> out = evaluate(graph, inputs);
  return {out[0].at(0), out[1].at(0), out[2].at(0)};
}

TEST(Adamw, FirstStepGoesByTheSignOfTheGradientAndDecays) {
  const std::vector<double> next = adamw_step(3, -4, 0, 0, 1, true);
  EXPECT_NEAR(next[0], 3 - 0.01 * (-1 + 0.1 * 3), 1e-9);
  EXPECT_NEAR(next[1], 0.1 * -2, 1e-15);
  EXPECT_NEAR(next[2], 0.01 * 4, 1e-15);
}

TEST(Adamw, LaterStepsByHand) {
  const std::vector<double> next = adamw_step(1, 2, 0.5, 0.25, 3, true);
  const double m = 0.9 * 0.5 + 0.1, v = 0.99 * 0.25 + 0.01;
  const double unbiased_m = m / (1 - std::pow(0.9, 3)), unbiased_v = v / (1 - std::pow(0.99, 3));
  EXPECT_NEAR(next[0], 1 - 0.01 * (unbiased_m / (std::sqrt(unbiased_v) + 1e-8) + 0.1), 1e-12);
}

TEST(Adamw, NothingChangesWhereTheGuardIsDown) {
  EXPECT_EQ(adamw_step(3, std::nan(""), 0.5, 0.25, 0, false), (std::vector<double>{3, 0.5, 0.25}));
}

}  // namespace
}  // namespace systole
