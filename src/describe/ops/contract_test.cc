#include <gtest/gtest.h>

#include <array>

#include "describe/ir/evaluate.h"
#include "describe/ops/ops.h"

namespace systole {
namespace {

TEST(Contract, ByHand) {
  Graph graph("g");
  const Value a = graph.input("a", Type(DType::f32, {2, 3})), b = graph.input("b", Type(DType::f32, {3, 2}));
  graph.output("y", contract(a, b, "mk,kn->nm"));
  const double av[] = {1, 2, 3, 4, 5, 6}, bv[] = {1, 0, 0, 1, 1, 1};
  const HostTensor y =
      evaluate(graph, std::array{HostTensor(DType::f32, {2, 3}, av), HostTensor(DType::f32, {3, 2}, bv)})[0];
  EXPECT_EQ(y.values(), (std::vector<double>{4, 10, 5, 11}));
}

TEST(Contract, NamesFollowTheirLetters) {
  Graph graph("g");
  const Value x = graph.input("x", Type(DType::f32, {4, 5, 6}, {"batch", "seq", "embed"}));
  const Value w = graph.input("w", Type(DType::f32, {6, 3, 7}, {"", "heads", "head"}));
  EXPECT_EQ(to_string(contract(x, w, "bse,ehd->bhsd").type()), "f32[batch=4, heads=3, seq=5, head=7]");
}

TEST(Contract, SumsInWideAndRoundsOnce) {
  Graph graph("g");
  const Value a = graph.input("a", Type(DType::bf16, {300})), b = graph.input("b", Type(DType::bf16, {300}));
  graph.output("narrow", contract(a, b, "k,k->"));
  graph.output("wide", contract(a, b, "k,k->", DType::f32));
  HostTensor ones(DType::bf16, {300});
  for (std::int64_t i = 0; i < 300; ++i) ones.set(i, 1);
  const std::vector<HostTensor> y = evaluate(graph, std::array{ones, ones});
  EXPECT_EQ(y[0].at(0), 300);  // in bf16 a sum of ones would stop at 256
  EXPECT_EQ(y[1].dtype(), DType::f32);
  EXPECT_EQ(y[1].at(0), 300);
}

TEST(Contract, TheSameTypeIsNoAttribute) {
  Graph graph("g");
  const Value a = graph.input("a", Type(DType::f32, {3}));
  contract(a, a, "k,k->", DType::f32);
  EXPECT_EQ(graph.nodes().back().attrs.find("dtype"), nullptr);
}

TEST(Contract, WorkIsTwiceTheLettersSpace) {
  const OpDef& op = op_named("contract");
  const Type operands[] = {Type(DType::bf16, {4, 5, 6}), Type(DType::bf16, {6, 3, 7})};
  const Attrs attrs{{"spec", std::string("bse,ehd->bshd")}};
  const OpCall call{op, attrs, operands, {}};
  const Work work = op.work(call, op.infer(call));
  EXPECT_EQ(work.flops, 2 * 4 * 5 * 6 * 3 * 7);
  EXPECT_EQ(work.model_flops, work.flops);
  EXPECT_EQ(work.read, Bytes(2 * (4 * 5 * 6 + 6 * 3 * 7)));
  EXPECT_EQ(work.written, Bytes(2 * 4 * 5 * 3 * 7));
}

}  // namespace
}  // namespace systole
