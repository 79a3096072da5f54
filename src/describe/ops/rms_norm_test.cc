// Beyond the generic test: the definition of the norm.

#include <gtest/gtest.h>

#include <cmath>

#include "describe/ir/evaluate.h"
#include "describe/ops/ops.h"

namespace systole {
namespace {

TEST(RmsNorm, HasMeanSquareOneAndKeepsZeros) {
  Graph graph("norm");
  const Value x = graph.input("x", Type(DType::bf16, {2, 4}));
  const RmsNorm norm = rms_norm(x, constant(graph, Type(DType::f32, {4}), 2), 1e-6);
  graph.output("y", norm.y);
  const HostTensor input(DType::bf16, {2, 4}, std::vector<double>{3, -3, 3, -3, 0, 0, 0, 0});
  const HostTensor y = evaluate(graph, std::span(&input, 1))[0];
  EXPECT_EQ(y.dtype(), DType::bf16);
  EXPECT_EQ(y.values(), (std::vector<double>{2, -2, 2, -2, 0, 0, 0, 0}));
}

}  // namespace
}  // namespace systole
