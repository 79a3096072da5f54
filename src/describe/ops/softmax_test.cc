// Beyond the generic test: values computed by hand, and rows at the limits.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "describe/ir/evaluate.h"
#include "describe/ops/ops.h"

namespace systole {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

std::vector<double> softmax_of(const Shape& shape, const std::vector<double>& x) {
  Graph graph("softmax");
  graph.output("y", softmax(graph.input("x", Type(DType::f64, shape))));
  const HostTensor input(DType::f64, shape, x);
  return evaluate(graph, std::span(&input, 1))[0].values();
}

TEST(Softmax, ValuesByHand) {
  const std::vector<double> y = softmax_of({2, 2}, {0, std::log(3), 5, 5});
  EXPECT_NEAR(y[0], 0.25, 1e-15);
  EXPECT_NEAR(y[1], 0.75, 1e-15);
  EXPECT_EQ(y[2], 0.5);
}

TEST(Softmax, LargeLogitsDoNotOverflow) {
  const std::vector<double> y = softmax_of({2}, {1e4, 1e4 - std::log(3)});
  EXPECT_NEAR(y[0], 0.75, 1e-12);
}

TEST(Softmax, MinusInfinityIsAProbabilityOfZero) {
  EXPECT_EQ(softmax_of({2, 2}, {-kInf, 1, -kInf, -kInf}), (std::vector<double>{0, 1, 0, 0}));
}

TEST(Softmax, PlusInfinityShows) {
  for (const double y : softmax_of({2}, {kInf, 1})) EXPECT_TRUE(std::isnan(y));
}

}  // namespace
}  // namespace systole
