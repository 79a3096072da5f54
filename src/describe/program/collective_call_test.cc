#include "describe/program/collective_call.h"

#include <gtest/gtest.h>

#include <array>

#include "describe/ops/ops.h"

namespace systole {
namespace {

TEST(CollectiveCall, of_a_node) {
  Graph g("g");
  Value x = g.input("x", Type(DType::bf16, {6, 4}));
  all_to_all(x, "data,model", 2, 1, 0);
  const CollectiveCall exchange = collective_call(g, g.nodes().back());
  EXPECT_EQ(exchange.kind, CollectiveKind::all_to_all);
  EXPECT_EQ(exchange.axis, "data,model");
  EXPECT_EQ(exchange.parts, 2);
  EXPECT_EQ(exchange.split_dim, 1);
  EXPECT_EQ(exchange.concat_dim, 0);
  EXPECT_EQ(exchange.shape, (Shape{6, 4}));
  EXPECT_FALSE(rounds_once(exchange));
  collective_permute(x, "data", 2, -1);
  EXPECT_EQ(collective_call(g, g.nodes().back()).by, -1);
  reduce_scatter(x, "data", 3, 0, "max");
  const CollectiveCall scatter = collective_call(g, g.nodes().back());
  EXPECT_TRUE(scatter.maximum);
  EXPECT_FALSE(rounds_once(scatter));
  all_reduce(x, "data", 3);
  EXPECT_TRUE(rounds_once(collective_call(g, g.nodes().back())));
  EXPECT_EQ(collective_call(g, g.nodes().back()).algorithm, CollectiveAlgorithm::direct);
  mul(x, x);
  EXPECT_FALSE(is_collective(g.nodes().back()));
  EXPECT_THROW(collective_call(g, g.nodes().back()), Failure);
}

TEST(CollectiveCall, on_a_mesh) {
  const Mesh mesh = Mesh::parse("data=2 model=3").value();
  CollectiveCall call{CollectiveKind::all_gather, "data,model", 6, DType::f32, {5, 2}};
  const Collective gather = collective_on(call, mesh).value();
  EXPECT_EQ(gather.axis_sizes, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(gather.bytes, Bytes(6 * 40));
  EXPECT_EQ(gather.grain, Bytes(4));
  call.kind = CollectiveKind::all_reduce;
  EXPECT_EQ(collective_on(call, mesh).value().bytes, Bytes(40));
  call.parts = 4;
  EXPECT_EQ(collective_on(call, mesh).error().kind, ErrorKind::invalid);
  call.axis = "data,modle";
  EXPECT_EQ(collective_on(call, mesh).error().kind, ErrorKind::not_found);
}

}  // namespace
}  // namespace systole
