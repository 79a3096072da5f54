#include "predict/perf/compiled_peak.h"

#include <gtest/gtest.h>

#include "describe/ops/ops.h"

namespace systole {
namespace {

const CompilerLayout kPlain{.alignment = 1};
const CompilerLayout kTiled{.sublanes = 8, .lanes = 128, .alignment = 512};

// A step of one graph, whose inputs named p.* are parameters.
struct Step {
  Program program;
  Function function;
  Graph& graph = function.graph;

  CompiledPeak peak(const CompilerLayout& layout) {
    for (const GraphInput& input : graph.inputs()) {
      ProgramValue value;
      value.name = input.name;
      value.residence = input.name.starts_with("p.") ? Residence::parameter : Residence::input;
      function.inputs.push_back({static_cast<int>(program.values.size())});
      program.values.push_back(std::move(value));
    }
    return compiled_peak(program, function, layout);
  }
};

Type matrix(std::int64_t rows, std::int64_t columns) { return Type(DType::f32, {rows, columns}); }

TEST(CompiledPeak, what_is_fused_has_no_place) {
  Step step;
  const Value x = step.graph.input("x", matrix(64, 64)), w = step.graph.input("w", matrix(64, 64));
  const Value y = contract(x, w, "ab,bc->ac");
  step.graph.output("z", contract(relu(add(y, x)), w, "ab,bc->ac"));
  const CompiledPeak peak = step.peak(kPlain);
  EXPECT_EQ(peak.arguments, Bytes(2 * 64 * 64 * 4));
  EXPECT_EQ(peak.outputs, Bytes(64 * 64 * 4));
  EXPECT_EQ(peak.temporaries, Bytes(64 * 64 * 4)) << "the first product's";
}

TEST(CompiledPeak, products_on_gpus_read_places) {
  for (const bool written : {false, true}) {
    Step step;
    const Value x = step.graph.input("x", matrix(64, 64)), w = step.graph.input("w", matrix(64, 64));
    step.graph.output("z", contract(relu(add(x, w)), w, "ab,bc->ac"));
    CompilerLayout layout = kPlain;
    layout.products_read_places = written;
    EXPECT_EQ(step.peak(layout).temporaries, Bytes(written ? 64 * 64 * 4 : 0));
  }
}

// Three layers y = relu(x·w), w sharded over two devices: stacks, and the buffers of one layer.
CompiledPeak of_three_layers(const CompilerLayout& layout) {
  Step step;
  Graph body("body");
  const Value x = body.input("x", matrix(256, 256)), w = body.input("w", matrix(128, 256));
  const Value whole = all_gather(cast(w, DType::bf16), "fsdp", 2, 0);
  const Value y = contract(cast(x, DType::bf16), whole, "ab,bc->ac", DType::f32);
  body.output("x", relu(y));
  body.output("kept", y);
  const Value all = step.graph.input("p.w", Type(DType::f32, {3, 128, 256}));
  const Value first = step.graph.input("x", matrix(256, 256));
  const Value carries[] = {first}, stacked[] = {all};
  const Repeat layers = repeat(std::move(body), 3, carries, stacked, {}, "layer");
  const int layer[] = {0}, all_dims[] = {0, 1};
  step.graph.output("sum", reduce_sum(add(layers.carries[0], reduce_sum(layers.outputs[0], layer)), all_dims));
  return step.peak(layout);
}

Bytes bytes_of(const CompiledPeak& peak, PeakOwner owner) {
  for (const PeakTerm& term : peak.terms) {
    if (term.owner == owner) return term.bytes;
  }
  return Bytes();
}

TEST(CompiledPeak, stacks_and_casts_of_all_layers) {
  CompilerLayout layout = kTiled;
  const CompiledPeak plain = of_three_layers(layout);
  EXPECT_EQ(bytes_of(plain, PeakOwner::residuals), Bytes(3 * 256 * 256 * 4));
  EXPECT_EQ(bytes_of(plain, PeakOwner::parameters), Bytes(256 * 256 * 2)) << "one layer's, gathered";
  layout.hoists_casts = true;
  EXPECT_EQ(bytes_of(of_three_layers(layout), PeakOwner::parameters), Bytes(256 * 256 * 2 + 3 * 128 * 256 * 2))
      << "and all in bf16";
}

TEST(CompiledPeak, holes_are_a_share) {
  CompilerLayout layout = kTiled;
  const CompiledPeak plain = of_three_layers(layout);
  layout.gaps = 0.5;
  const CompiledPeak holed = of_three_layers(layout);
  EXPECT_EQ(holed.gaps, (plain.temporaries - plain.gaps) * 0.5);
  EXPECT_EQ(holed.temporaries, plain.temporaries - plain.gaps + holed.gaps);
}

TEST(CompiledPeak, tiles_are_filled_up_where_it_costs_least) {
  Step step;
  step.graph.input("x", matrix(100, 256));                    // 104 x 256
  step.graph.input("y", Type(DType::f32, {3}));               // a tile
  step.graph.input("z", Type(DType::bf16, {4, 128, 6, 64}));  // 128 innermost, 64 before it
  EXPECT_EQ(step.peak(kTiled).arguments, Bytes(104 * 256 * 4 + 8 * 128 * 4 + 4 * 6 * 64 * 128 * 2));
}

}  // namespace
}  // namespace systole
