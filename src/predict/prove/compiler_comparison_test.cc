#include "predict/prove/compiler_comparison.h"

#include <gtest/gtest.h>

#include "describe/ops/ops.h"

namespace systole::prove {
namespace {

// A step on one device of four: gathers a weight, sums a gradient, and returns the weight.
struct Step {
  Program program;
  Function function;
  stablehlo::Module module;

  Step() {
    Graph& graph = function.graph;
    const Value w = graph.input("w", Type(DType::f32, {2, 8})), x = graph.input("x", Type(DType::f32, {8, 8}));
    const Value whole = all_gather(w, "data", 4, 0);
    graph.output("w", w);
    graph.output("sum", all_reduce(add(whole, x), "data", 4));
    function.scratch = Bytes(1024);
    program.arena = Bytes(2000);
    for (const GraphInput& input : graph.inputs())
      module.arguments.push_back({graph.value_name(input.value), graph.type(input.value), {}, {}});
    for (const GraphOutput& output : graph.outputs())
      module.results.push_back({output.name, graph.type(output.value), {}, {}});
    module.aliases = {{0, 0}};
  }
};

Proof compiled(std::vector<CompiledCollective> collectives) {
  Proof proof;
  proof.executed.collectives = std::move(collectives);
  return proof;
}

TEST(CompilerComparison, memory_is_what_the_program_plans) {
  const Step step;
  const CompilerComparison both = beside(step.program, step.function, step.module, {});
  EXPECT_EQ(both.ours.arguments, Bytes(2 * 8 * 4 + 8 * 8 * 4));
  EXPECT_EQ(both.ours.outputs, Bytes(2 * 8 * 4 + 8 * 8 * 4));
  EXPECT_EQ(both.ours.aliased, Bytes(2 * 8 * 4));
  EXPECT_EQ(both.ours.temporaries, Bytes(1024));
  EXPECT_EQ(both.arena, Bytes(2000));
}

TEST(CompilerComparison, collectives_that_are_the_same) {
  const Step step;
  const CompilerComparison both =
      beside(step.program, step.function, step.module,
             compiled({{"all_gather", "a", Bytes(256), 4, 1, 1}, {"all_reduce", "b", Bytes(256), 4, 1, 1}}));
  ASSERT_EQ(both.collectives.size(), 2U);
  EXPECT_EQ(both.collectives[0], (CollectivesBeside{"all_gather", 1, 1, Bytes(256), Bytes(256)}));
  EXPECT_EQ(both.collectives[1], (CollectivesBeside{"all_reduce", 1, 1, Bytes(256), Bytes(256)}));
  EXPECT_TRUE(both.unplanned.empty());
}

TEST(CompilerComparison, several_put_into_one_are_planned) {
  Step step;
  Graph& graph = step.function.graph;
  graph.output("more", all_reduce(graph.input("y", Type(DType::f32, {16})), "data", 4));
  const CompilerComparison both =
      beside(step.program, step.function, step.module,
             compiled({{"all_gather", "a", Bytes(256), 4, 1, 1}, {"all_reduce", "b", Bytes(256 + 64), 4, 1, 1}}));
  EXPECT_EQ(both.collectives[1], (CollectivesBeside{"all_reduce", 2, 1, Bytes(320), Bytes(320)}));
  EXPECT_TRUE(both.unplanned.empty());
}

TEST(CompilerComparison, one_that_was_not_planned_is_named) {
  const Step step;
  const CompiledCollective stranger{"collective_permute", "jit(step)/roll", Bytes(64), 0, 1, 3};
  const CompilerComparison both =
      beside(step.program, step.function, step.module, compiled({{"all_reduce", "b", Bytes(256), 4, 1, 1}, stranger}));
  EXPECT_EQ(both.unplanned, std::vector<CompiledCollective>{stranger});
  ASSERT_EQ(both.collectives.size(), 3U);
  EXPECT_EQ(both.collectives[0], (CollectivesBeside{"all_gather", 1, 0, Bytes(256), Bytes()}));
  EXPECT_EQ(both.collectives[2], (CollectivesBeside{"collective_permute", 0, 3, Bytes(), Bytes(192)}));
}

}  // namespace
}  // namespace systole::prove
