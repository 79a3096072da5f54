#include "predict/perf/compiled_kernels.h"

#include <gtest/gtest.h>

#include <array>

#include "describe/ops/ops.h"

namespace systole {
namespace {

const CompilerLayout kPlain{.alignment = 1};

struct Step {
  Function function;
  Graph& graph = function.graph;

  std::vector<CompiledKernel> kernels(const CompilerLayout& layout = kPlain) {
    return compiled_kernels(function, layout);
  }
};

Type matrix(std::int64_t rows, std::int64_t columns) { return Type(DType::f32, {rows, columns}); }
constexpr double kBytes = 64 * 64 * 4;

// relu(x·w + y): add and relu are fused into the product, whose own result is not written.
TEST(CompiledKernels, what_is_elementwise_ends_the_kernel_of_its_operand) {
  Step step;
  const Value x = step.graph.input("x", matrix(64, 64)), w = step.graph.input("w", matrix(64, 64)),
              y = step.graph.input("y", matrix(64, 64));
  step.graph.output("z", relu(add(contract(x, w, "ab,bc->ac"), y)));
  const std::vector<CompiledKernel> kernels = step.kernels();
  ASSERT_EQ(kernels.size(), 1U);
  EXPECT_EQ(kernels[0].op, "contract");
  EXPECT_EQ(kernels[0].bytes, 4 * kBytes) << "x, w and y read, z written";
  EXPECT_EQ(kernels[0].results, 64 * 64);
  EXPECT_EQ(kernels[0].flops, 2.0 * 64 * 128 * 128);
}

// An elementwise value that ends no kernel is computed by each of its readers from its operands.
TEST(CompiledKernels, what_ends_nothing_is_computed_by_its_readers) {
  Step step;
  const Value x = step.graph.input("x", matrix(64, 64)), w = step.graph.input("w", matrix(64, 64));
  const Value act = relu(x);
  step.graph.output("a", contract(act, w, "ab,bc->ac"));
  step.graph.output("b", contract(act, w, "ab,cb->ac"));
  const std::vector<CompiledKernel> kernels = step.kernels();
  ASSERT_EQ(kernels.size(), 2U);
  for (const CompiledKernel& kernel : kernels) EXPECT_EQ(kernel.bytes, 3 * kBytes);
}

// Three iterations of y = x·w: each product is written to the next carry, and once more to the stack.
TEST(CompiledKernels, a_loop_is_its_body_as_often_as_it_runs) {
  Step step;
  Graph body("body");
  const Value x = body.input("x", matrix(64, 64)), w = body.input("w", matrix(64, 64));
  const Value y = contract(x, w, "ab,bc->ac");
  body.output("x", y);
  body.output("kept", y);
  const Value first = step.graph.input("x", matrix(64, 64)),
              weights = step.graph.input("w", Type(DType::f32, {3, 64, 64}));
  const std::array carries{first}, stacked{weights};
  const Repeat rounds = repeat(std::move(body), 3, carries, stacked, {}, "layer");
  step.graph.output("y", rounds.carries[0]);
  step.graph.output("kept", rounds.outputs[0]);
  const std::vector<CompiledKernel> kernels = step.kernels();
  ASSERT_EQ(kernels.size(), 1U);
  EXPECT_EQ(kernels[0].runs, 3);
  EXPECT_EQ(kernels[0].bytes, 4 * kBytes);
}

// 1,024 queries and keys in blocks of 512: a causal mask hides one of four pairs entirely.
TEST(CompiledKernels, attention_is_the_blocks_that_it_is_lowered_to) {
  for (const bool causal : {false, true}) {
    Step step;
    const Type heads(DType::bf16, {2, 1024, 3, 128});
    const Value q = step.graph.input("q", heads), k = step.graph.input("k", heads), v = step.graph.input("v", heads);
    AttentionOptions options;
    options.causal = causal;
    options.scale = 1;
    step.graph.output("o", attention(q, k, v, options).o);
    double pairs = 0, scores = 0;
    for (const CompiledKernel& kernel : step.kernels()) {
      if (kernel.scores == 0) continue;
      pairs += kernel.runs;
      scores += kernel.runs * kernel.scores;
      EXPECT_EQ(kernel.flops, 2 * kernel.scores * 128 * 2) << "two products";
    }
    EXPECT_EQ(scores, (causal ? 3.0 : 4.0) * 512 * 512 * 2 * 3);
    EXPECT_EQ(pairs, causal ? 3 : 4) << "all heads and entries at once";
  }
}

// A block of 512 × 512 is cut out of rows of 512 + 512 elements; once for all entries of a batch.
TEST(CompiledKernels, a_bias_by_distance_is_skewed_into_each_pair_of_blocks) {
  Step step;
  const Type heads(DType::bf16, {2, 1024, 3, 128});
  const Value q = step.graph.input("q", heads), k = step.graph.input("k", heads), v = step.graph.input("v", heads);
  AttentionOptions options;
  options.causal = true;
  options.scale = 1;
  options.bias_by_distance = step.graph.input("bias", Type(DType::f32, {3, 32}));
  step.graph.output("o", attention(q, k, v, options).o);
  double passes = 0;
  for (const CompiledKernel& kernel : step.kernels()) {
    if (kernel.runs == 3 && kernel.scores == 0) passes += kernel.elements / (3.0 * 512 * 1024);
  }
  EXPECT_EQ(passes, 4);
}

// Operands that do not fit on the chip stream in once for each block of results.
TEST(CompiledKernels, what_outgrows_the_chip_streams) {
  for (const std::int64_t room : {2, 1}) {
    Step step;
    const Value x = step.graph.input("x", matrix(64, 64)), w = step.graph.input("w", matrix(64, 64));
    step.graph.output("y", contract(x, w, "ab,bc->ac"));
    CompilerLayout layout = kPlain;
    layout.on_chip = Bytes(room * 64 * 64 * 4);
    EXPECT_EQ(step.kernels(layout)[0].streamed, room == 2 ? 0 : 2.0 * 64 * 64 * 64 * 4) << room;
  }
}

}  // namespace
}  // namespace systole
