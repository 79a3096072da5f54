// Beyond the generic test: slots computed by hand, and the order that makes routing the same everywhere.

#include <gtest/gtest.h>

#include <limits>

#include "describe/ir/evaluate.h"
#include "describe/ops/routing.h"

namespace systole {
namespace {

TEST(TopK, LargestFirstAndOfEqualOnesTheLowerIndex) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Graph graph("top_k");
  const TopK top = top_k(graph.input("x", Type(DType::f32, {3, 4})), 3);
  graph.output("values", top.values);
  graph.output("indices", top.indices);
  const HostTensor x(DType::f32, {3, 4}, std::vector<double>{1, 5, 5, 2, 0, 0, 0, 0, nan, -1, nan, -2});
  const std::vector<HostTensor> out = evaluate(graph, std::span(&x, 1));
  EXPECT_EQ(out[1].values(), (std::vector<double>{1, 2, 3, 0, 1, 2, 1, 3, 0}));
  EXPECT_EQ(out[0].at(2), 2);
  EXPECT_EQ(out[0].at(6), -1);
}

TEST(Route, FillsPlacesInTheOrderOfTokensAndDropsTheRest) {
  Graph graph("route");
  const Routed routed = route(graph.input("chosen", Type(DType::i32, {2, 3, 2}, {"batch", "seq", ""})), 3, 2);
  graph.output("choice", routed.choice);
  graph.output("token", routed.token);
  graph.output("wanted", routed.wanted);
  EXPECT_EQ(to_string(routed.token.type()), "i32[batch=2, expert=3, capacity=2]");
  // The second token's second choice, expert 0, comes before the third's first. A -1 is ignored.
  const HostTensor chosen(DType::i32, {2, 3, 2}, std::vector<double>{0, 1, 2, 0, 0, 2, 1, -1, 1, 0, 1, 3});
  const std::vector<HostTensor> out = evaluate(graph, std::span(&chosen, 1));
  EXPECT_EQ(out[0].values(), (std::vector<double>{0, 3, 1, -1, 2, 5, 3, -1, 0, 2, -1, -1}));
  EXPECT_EQ(out[1].values(), (std::vector<double>{0, 1, 0, -1, 1, 2, 1, -1, 0, 1, -1, -1}));
  EXPECT_EQ(out[2].values(), (std::vector<double>{3, 1, 2, 1, 3, 0}));
}

}  // namespace
}  // namespace systole
