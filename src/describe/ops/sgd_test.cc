// Beyond the generic test: updates computed by hand, and `apply`.

#include <gtest/gtest.h>

#include "describe/ir/evaluate.h"
#include "describe/ops/ops.h"

namespace systole {
namespace {

const Type kOne(DType::f64, {1}), kScalar(DType::f64, {});

std::vector<double> sgd_step(double momentum, double decay, bool apply) {
  Graph graph("sgd");
  auto value = [&](double x) { return constant(graph, kOne, x); };
  std::optional<Value> m;
  if (momentum != 0) m = value(10);
  const Sgd next = sgd(value(3), value(4), m, constant(graph, kScalar, 0.5), constant(graph, kScalar, 0.1),
                       constant(graph, Type(DType::boolean, {}), apply ? 1 : 0), {momentum, decay});
  EXPECT_EQ(next.m.has_value(), m.has_value());
  graph.output("p", next.parameter);
  if (next.m) graph.output("m", *next.m);
  std::vector<double> values;
  for (const HostTensor& tensor : evaluate(graph, {})) values.push_back(tensor.at(0));
  return values;
}

TEST(Sgd, ByHand) {
  EXPECT_NEAR(sgd_step(0, 0, true)[0], 3 - 0.1 * 2, 1e-15);
  EXPECT_NEAR(sgd_step(0, 0.2, true)[0], 3 - 0.1 * (2 + 0.2 * 3), 1e-15);
  const std::vector<double> next = sgd_step(0.5, 0.2, true);
  EXPECT_NEAR(next[1], 0.5 * 10 + 2 + 0.2 * 3, 1e-15);
  EXPECT_NEAR(next[0], 3 - 0.1 * next[1], 1e-15);
  EXPECT_EQ(sgd_step(0.5, 0.2, false), (std::vector<double>{3, 10}));
}

}  // namespace
}  // namespace systole
