// Beyond the generic test: rows computed by hand, ids outside the table, and the bytes read.

#include <gtest/gtest.h>

#include "describe/ir/evaluate.h"
#include "describe/ir/op.h"
#include "describe/ops/ops.h"

namespace systole {
namespace {

TEST(Embedding, TakesRowsAndItsGradientAddsThemUp) {
  Graph graph("embedding");
  const Value table = graph.input("table", Type(DType::f32, {3, 2}, {"vocab", "embed"}));
  const Value ids = graph.input("ids", Type(DType::i32, {4}, {"seq"}));
  const Value y = embedding(table, ids);
  const Value d = embedding_grad(ids, y, 3, DType::f32, "vocab");
  graph.output("y", y);
  graph.output("d", d);
  EXPECT_EQ(to_string(y.type()), "f32[seq=4, embed=2]");
  EXPECT_EQ(to_string(d.type()), "f32[vocab=3, embed=2]");
  const HostTensor inputs[] = {HostTensor(DType::f32, {3, 2}, std::vector<double>{1, 2, 3, 4, 5, 6}),
                               HostTensor(DType::i32, {4}, std::vector<double>{2, -1, 2, 3})};
  const Tally before = tally();
  const std::vector<HostTensor> out = evaluate(graph, inputs);
  EXPECT_EQ(out[0].values(), (std::vector<double>{5, 6, 0, 0, 5, 6, 0, 0}));
  EXPECT_EQ(out[1].values(), (std::vector<double>{0, 0, 0, 0, 10, 12}));
  EXPECT_EQ(tally().flops - before.flops, 4);
  EXPECT_EQ(tally().skipped_flops - before.skipped_flops, 4);
}

TEST(Embedding, ReadsTheRowsItTakesAndAtMostTheTable) {
  const OpDef& op = op_named("embedding");
  auto read = [&](std::int64_t count) {
    const Type operands[] = {Type(DType::f32, {100, 8}), Type(DType::i32, {count})};
    const OpCall call{op, {}, operands, {}};
    return op.work(call, op.infer(call)).read;
  };
  EXPECT_EQ(read(10), Bytes(10 * 4 + 10 * 8 * 4));
  EXPECT_EQ(read(1000), Bytes(1000 * 4 + 100 * 8 * 4));
}

}  // namespace
}  // namespace systole
