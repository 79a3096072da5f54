// Beyond the generic test: precision with a large mean.

#include <gtest/gtest.h>

#include <cmath>

#include "describe/ir/evaluate.h"
#include "describe/ops/ops.h"

namespace systole {
namespace {

TEST(LayerNorm, ALargeMeanCostsNoDigits) {
  Graph graph("norm");
  const Value x = graph.input("x", Type(DType::f64, {1, 4}));
  const Value one = constant(graph, Type(DType::f64, {4}), 1);
  const LayerNorm norm = layer_norm(x, one, scale(one, 0), 1e-12);
  graph.output("y", norm.y);
  graph.output("mean", norm.mean);
  graph.output("rstd", norm.rstd);
  const HostTensor input(DType::f64, {1, 4}, std::vector<double>{1e9 + 1, 1e9 - 1, 1e9 + 1, 1e9 - 1});
  const std::vector<HostTensor> out = evaluate(graph, std::span(&input, 1));
  EXPECT_NEAR(out[0].at(0), 1, 1e-9);
  EXPECT_NEAR(out[0].at(1), -1, 1e-9);
  EXPECT_EQ(out[1].at(0), 1e9);
  EXPECT_NEAR(out[2].at(0), 1, 1e-9);
}

}  // namespace
}  // namespace systole
