// For every op: the reference writes exactly the inferred shape; `work` equals the count of the counting scalars; every
// op has cases.

#include <gtest/gtest.h>

#include <set>

#include "describe/ops/testing/list.h"

namespace systole {
namespace {

bool has_own_test(std::string_view op) { return op == "repeat" || op == "fusion" || op == "send" || op == "receive"; }

TEST(EveryOp, HasCases) {
  std::set<std::string> tried;
  for (const OpCase& call : op_cases(DType::f64).good) tried.insert(call.op);
  for (const OpDef* op : all_ops()) {
    if (has_own_test(op->name)) continue;
    EXPECT_TRUE(tried.count(op->name)) << op->name << " has no case: ops/testing/list.h";
  }
}

// Two runs over different initial bytes agree: each element was written. run_reference checks the guards on both sides.
TEST(EveryOp, InferredShapeIsReferenceShape) {
  for (const DType f : {DType::f64, DType::f32, DType::bf16}) {
    for (const OpCase& call : op_cases(f).good) {
      const std::vector<HostTensor> operands = fill_operands(call);
      const OpDef& op = op_named(call.op);
      const auto first = run_reference(op, call.attrs, operands, 0xA5),
                 second = run_reference(op, call.attrs, operands, 0x3C);
      ASSERT_EQ(first.size(), second.size());
      for (std::size_t i = 0; i < first.size(); ++i) {
        EXPECT_TRUE(first[i] == second[i]) << call.describe() << " does not write all of result " << i;
      }
    }
  }
}

TEST(EveryOp, WorkIsCounted) {
  for (const OpCase& call : op_cases(DType::f64).good) {
    const std::vector<HostTensor> operands = fill_operands(call);
    const OpDef& op = op_named(call.op);
    const std::vector<Type> types = call.operand_types(), results = infer_results(op, call.attrs, types);
    const Work work = op.work(OpCall{op, call.attrs, types, {}}, results);
    const Tally before = tally();
    run_reference(op, call.attrs, operands);
    const std::int64_t skipped = tally().skipped_flops - before.skipped_flops;
    EXPECT_EQ(tally().flops - before.flops + skipped, work.flops) << call.describe();
    const std::int64_t skipped_roots = tally().skipped_transcendentals - before.skipped_transcendentals;
    EXPECT_EQ(tally().transcendentals - before.transcendentals + skipped_roots, work.transcendentals)
        << call.describe();
    EXPECT_LE(work.model_flops, work.flops + work.transcendentals) << call.describe();
  }
}

// Every op has the texts of the generated table of ops, and describes all its attributes.
TEST(EveryOp, IsDescribed) {
  std::set<std::string> names;
  for (const OpDef* op : all_ops()) {
    EXPECT_TRUE(names.insert(op->name).second) << op->name << " is defined twice";
    EXPECT_FALSE(std::string_view(op->summary).empty()) << op->name;
    EXPECT_FALSE(std::string_view(op->signature).empty()) << op->name;
  }
  for (const OpCase& call : op_cases(DType::f32).good) {
    const OpDef& op = op_named(call.op);
    std::set<std::string> described;
    for (const OpAttr& attr : op.attrs) {
      described.insert(attr.name);
      const bool there = call.attrs.find(attr.name) != nullptr;
      EXPECT_TRUE(there || !attr.required) << call.describe() << " lacks " << attr.name;
    }
    for (const auto& [name, value] : call.attrs.entries())
      EXPECT_TRUE(described.count(name)) << call.op << " has an attribute " << name;
  }
}

}  // namespace
}  // namespace systole
