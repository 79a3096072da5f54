// Every op, lowered, compiled and run by XLA on the CPU, compared with the reference on the cases of
// describe/ops/testing.

#include <gtest/gtest.h>

#include <cstdlib>

#include "describe/ops/testing/list.h"
#include "describe/stablehlo/lower_op.h"
#include "describe/stablehlo/testing/xla.h"

namespace systole::stablehlo {
namespace {

// Compilation takes nearly all of the time, so all cases of a type are one module. Each case runs in f32 or in bf16,
// and every ninth in f64; of attention, the slowest op, every ninth in each type. SYSTOLE_TEST_LONG=1: all cases.
// SYSTOLE_OPS="exp,dropout": all cases of these ops.
std::vector<OpCase> chosen_cases(DType f) {
  const char* wanted = std::getenv("SYSTOLE_OPS");
  const std::string ops = wanted == nullptr ? "" : fmt::format(",{},", wanted);
  const bool all = std::getenv("SYSTOLE_TEST_LONG") != nullptr || wanted != nullptr;
  int turn = f == DType::f32 ? 0 : 1;
  std::vector<OpCase> cases;
  for (OpCase& call : op_cases(f).good) {
    if (!ops.empty() && ops.find("," + call.op + ",") == std::string::npos) continue;
    if (call.attrs.find("zigzag") != nullptr) continue;  // AttentionInZigzag
    if (turn++ % (f == DType::f64 || call.op.starts_with("attention") ? 9 : 2) == 0 || all)
      cases.push_back(std::move(call));
  }
  return cases;
}

class EveryOp : public testing::TestWithParam<DType> {};

TEST_P(EveryOp, OnXlaIsTheReference) {
  NEEDS("cpu");
  const std::vector<OpCase> cases = chosen_cases(GetParam());
  ASSERT_FALSE(cases.empty());
  Graph graph("cases");
  std::vector<HostTensor> inputs;
  std::vector<std::vector<HostTensor>> wanted;
  for (const OpCase& call : cases) {
    const std::vector<HostTensor> operands = fill_operands(call);
    wanted.push_back(run_reference(op_named(call.op), call.attrs, operands));
    std::vector<Value> values;
    for (const HostTensor& operand : operands) {
      values.push_back(graph.input(fmt::format("x{}", graph.inputs().size()), type_of(operand)));
      inputs.push_back(operand);
    }
    for (const Value result : graph.apply(call.op, values, call.attrs))
      graph.output(fmt::format("y{}", graph.outputs().size()), result);
  }
  const std::vector<HostTensor> got = run(*it, lower(graph), inputs);
  std::size_t next = 0;
  for (std::size_t c = 0; c < cases.size(); ++c) {
    for (std::size_t i = 0; i < wanted[c].size(); ++i) {
      const DType dtype = wanted[c][i].dtype();
      const DType accumulate = dtype == DType::f64 ? DType::f64 : DType::f32;
      const std::string what = difference(got[next++], wanted[c][i], tolerance_of(cases[c], dtype, accumulate));
      EXPECT_EQ(what, "") << cases[c].describe() << " result " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Of, EveryOp, testing::Values(DType::f32, DType::bf16, DType::f64),
                         [](const auto& each) { return std::string(name_of(each.param)); });

// Partitioning splits such rows into chunks in plain order, which are lowered.
TEST(Lowerings, AttentionInZigzagIsRefused) {
  int refused = 0;
  for (const OpCase& call : op_cases(DType::f64).good) {
    if (call.attrs.find("zigzag") == nullptr) continue;
    ++refused;
    Graph graph("case");
    std::vector<Value> values;
    for (const HostTensor& operand : fill_operands(call))
      values.push_back(graph.input(fmt::format("x{}", values.size()), type_of(operand)));
    for (const Value result : graph.apply(call.op, values, call.attrs))
      graph.output(fmt::format("y{}", graph.outputs().size()), result);
    try {
      lower(graph);
      ADD_FAILURE() << call.describe();
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.error().kind, ErrorKind::unsupported) << to_string(failure.error());
    }
  }
  EXPECT_GT(refused, 0) << "no case is in zigzag";
}

TEST(Lowerings, ThereIsOneForEveryOp) {
  for (const OpDef* op : all_ops()) {
    const bool transfer = op->name == std::string_view("send") || op->name == std::string_view("receive");
    EXPECT_EQ(find_lowering(op->name) == nullptr, transfer) << op->name;  // a module covers one stage
  }
}

}  // namespace
}  // namespace systole::stablehlo
