// Beyond the generic test: rows computed by hand, rows outside x, and the bytes read.

#include <gtest/gtest.h>

#include "describe/ir/evaluate.h"
#include "describe/ir/op.h"
#include "describe/ops/routing.h"

namespace systole {
namespace {

TEST(Rows, AreTakenFromTheirOwnBatchEntryAndAddedBackThere) {
  Graph graph("rows");
  const Value x = graph.input("x", Type(DType::f32, {2, 2, 2}, {"batch", "seq", "embed"}));
  const Value rows = graph.input("rows", Type(DType::i32, {2, 3}, {"batch", "place"}));
  const Value y = gather_rows(x, rows);
  const Value back = scatter_rows(y, rows, 1, 2, DType::f32, "seq");
  graph.output("y", y);
  graph.output("back", back);
  EXPECT_EQ(to_string(y.type()), "f32[batch=2, place=3, embed=2]");
  EXPECT_EQ(to_string(back.type()), "f32[batch=2, seq=2, embed=2]");
  const HostTensor inputs[] = {HostTensor(DType::f32, {2, 2, 2}, std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8}),
                               HostTensor(DType::i32, {2, 3}, std::vector<double>{1, -1, 1, 0, 2, 1})};
  const Tally before = tally();
  const std::vector<HostTensor> out = evaluate(graph, inputs);
  EXPECT_EQ(out[0].values(), (std::vector<double>{3, 4, 0, 0, 3, 4, 5, 6, 0, 0, 7, 8}));
  EXPECT_EQ(out[1].values(), (std::vector<double>{0, 0, 6, 8, 5, 6, 7, 8}));
  EXPECT_EQ(tally().flops - before.flops, 8);
  EXPECT_EQ(tally().skipped_flops - before.skipped_flops, 4);
}

}  // namespace
}  // namespace systole
