// Beyond the generic test: the property that makes a rotation a position embedding.

#include <gtest/gtest.h>

#include <cmath>

#include "describe/ir/evaluate.h"
#include "describe/ops/ops.h"

namespace systole {
namespace {

const Type kX(DType::f64, {1, 1, 1, 6});

// q·k after rotating both to their positions.
double score(double q_position, double k_position) {
  Graph graph("score");
  const Value q = graph.input("q", kX), k = graph.input("k", kX);
  const Value at_q = constant(graph, Type(DType::i32, {1, 1}), q_position);
  const Value at_k = constant(graph, Type(DType::i32, {1, 1}), k_position);
  graph.output("score", sum_all(mul(rotary(q, at_q, {100}), rotary(k, at_k, {100}))));
  const HostTensor inputs[] = {HostTensor(DType::f64, kX.shape, std::vector<double>{1, -2, 3, 0.5, 0.25, 2}),
                               HostTensor(DType::f64, kX.shape, std::vector<double>{2, 1, -1, 3, 0.5, 1})};
  return evaluate(graph, inputs)[0].at(0);
}

TEST(Rotary, ScoresDependOnTheDistanceAlone) {
  EXPECT_NEAR(score(9, 4), score(105, 100), 1e-12);
  EXPECT_GT(std::abs(score(9, 4) - score(9, 5)), 0.1);
}

TEST(Rotary, InverseTurnsBack) {
  Graph graph("there and back");
  const Value x = graph.input("x", kX), positions = constant(graph, Type(DType::i32, {1, 1}), 17);
  graph.output("y", rotary(rotary(x, positions, {100}), positions, {.theta = 100, .inverse = true}));
  const HostTensor input(DType::f64, kX.shape, std::vector<double>{1, 2, 3, 4, 5, 6});
  const HostTensor y = evaluate(graph, std::span(&input, 1))[0];
  for (std::int64_t i = 0; i < 6; ++i) EXPECT_NEAR(y.at(i), input.at(i), 1e-13);
}

TEST(Rotary, TurnsTheFirstHalfAgainstTheSecond) {
  Graph graph("quarter");
  const Value x = graph.input("x", Type(DType::f64, {1, 1, 1, 4}));
  graph.output("y", rotary(x, constant(graph, Type(DType::i32, {1, 1}), 1), {16}));
  const HostTensor input(DType::f64, {1, 1, 1, 4}, std::vector<double>{1, 0, 0, 1});
  const HostTensor y = evaluate(graph, std::span(&input, 1))[0];
  const double want[] = {std::cos(1.0), -std::sin(0.25), std::sin(1.0), std::cos(0.25)};  // 16^(-2/4) = 1/4
  for (std::int64_t i = 0; i < 4; ++i) EXPECT_NEAR(y.at(i), want[i], 1e-15);
}

// theta 16, d 6: the frequencies 1, 16^(-1/3) and 16^(-2/3) make 5, 1.98 and 0.79 turns in 10π positions. The first is
// kept, the second blended (a share (1.98 - 1) / (4 - 1) is kept), the third divided by 8.
TEST(Rotary, StretchedFrequenciesAreKeptBlendedAndDivided) {
  Graph graph("stretched");
  const Value x = graph.input("x", kX);
  RotaryOptions options{16, RotaryScaling{8, 1, 4, 31}};
  graph.output("y", rotary(x, constant(graph, Type(DType::i32, {1, 1}), 3), options));
  const HostTensor input(DType::f64, kX.shape, std::vector<double>{1, 1, 1, 0, 0, 0});
  const HostTensor y = evaluate(graph, std::span(&input, 1))[0];
  const double between = std::pow(16, -1.0 / 3), kept = (31 * between / (2 * M_PI) - 1) / 3;
  ASSERT_GT(kept, 0.2);
  ASSERT_LT(kept, 0.5);
  const double frequencies[] = {1, between * kept + between / 8 * (1 - kept), std::pow(16, -2.0 / 3) / 8};
  for (std::int64_t i = 0; i < 3; ++i)
    EXPECT_NEAR(std::atan2(y.at(i + 3), y.at(i)), std::remainder(3 * frequencies[i], 2 * M_PI), 1e-14) << i;
}

}  // namespace
}  // namespace systole
