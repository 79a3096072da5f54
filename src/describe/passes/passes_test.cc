// Rewrites as pairs: two graphs must reach the same text, and values must not change.
#include <gtest/gtest.h>

#include "describe/ir/evaluate.h"
#include "describe/ir/op.h"
#include "describe/ir/text.h"
#include "describe/ir/verify.h"
#include "describe/ir/work.h"
#include "describe/ops/ops.h"
#include "describe/passes/passes.h"

namespace systole {
namespace {

const Type kRow(DType::f32, {4, 6}, {"batch", "n"});

Graph build(const std::function<Value(Graph&, Value)>& body) {
  Graph g("g");
  const Value x = g.input("x", kRow);
  g.output("y", body(g, x));
  return g;
}

HostTensor some_input() {
  HostTensor t(DType::f32, {4, 6});
  for (std::int64_t i = 0; i < 24; ++i) t.set(i, 0.1 * static_cast<double>(i) - 1.1);
  return t;
}

TEST(Passes, folding_reaches_the_simple_graph) {
  const Graph folded = drop_dead(fold_constants(build([](Graph& g, Value x) {
    const Value two = add(constant(g, kRow, 0.5), constant(g, kRow, 1.5));
    return mul(mul(x, constant(g, kRow, 1)), two);
  })));
  const Graph simple = build([](Graph& g, Value x) { return mul(x, constant(g, kRow, 2)); });
  EXPECT_EQ(to_text(folded), to_text(simple));
}

TEST(Passes, equal_nodes_merge) {
  const Graph merged = merge_common(build([](Graph&, Value x) { return mul(tanh(x), tanh(x)); }));
  const Graph once = build([](Graph&, Value x) {
    const Value t = tanh(x);
    return mul(t, t);
  });
  EXPECT_EQ(to_text(merged), to_text(once));
}

TEST(Passes, a_sum_is_widened_and_never_narrowed) {
  const int dims[] = {0};
  const auto cast_sum = [&](DType of) {
    return build([&](Graph&, Value x) { return cast(reduce_sum(cast(x, of), dims), DType::f32); });
  };
  const Graph wide = build([&](Graph&, Value x) { return reduce_sum(cast(x, DType::bf16), dims, DType::f32); });
  EXPECT_EQ(to_text(drop_dead(widen_results(cast_sum(DType::bf16), false))), to_text(wide));
  EXPECT_EQ(to_text(widen_results(cast_sum(DType::f64), false)), to_text(cast_sum(DType::f64)));
  EXPECT_EQ(to_text(widen_results(cast_sum(DType::i32), false)), to_text(cast_sum(DType::i32))) << "counts stay exact";
}

TEST(Passes, a_sum_of_widened_values_reads_the_narrow_ones) {
  const int dims[] = {0};
  const auto sum_of = [&](DType narrow, DType wide) {
    return build([&](Graph&, Value x) { return reduce_sum(cast(cast(x, narrow), wide), dims); });
  };
  const Graph wide = build([&](Graph&, Value x) { return reduce_sum(cast(x, DType::bf16), dims, DType::f32); });
  const Graph narrowed = drop_dead(widen_results(sum_of(DType::bf16, DType::f32), true));
  EXPECT_EQ(to_text(narrowed), to_text(wide));
  const HostTensor x = some_input();
  const auto value_of = [&](const Graph& graph) { return evaluate(graph, std::array{x}).at(0); };
  const HostTensor before = value_of(sum_of(DType::bf16, DType::f32)), after = value_of(narrowed);
  EXPECT_EQ(before, after) << "the same bits";
  EXPECT_EQ(to_text(widen_results(sum_of(DType::bf16, DType::f32), false)), to_text(sum_of(DType::bf16, DType::f32)));
  for (const Graph& other : {sum_of(DType::bf16, DType::f64), sum_of(DType::f32, DType::f32)})
    EXPECT_EQ(to_text(widen_results(other, true)), to_text(other));
}

TEST(Passes, a_chain_becomes_one_fusion_that_changes_no_bit_and_moves_no_middle) {
  const auto chain = [](Graph& g, Value x) {
    const int last[] = {1};
    const Value bias = broadcast(constant(g, Type(DType::f32, {6}, {"n"}), 0.25), kRow, last);
    return cast(gelu(add(cast(tanh(x), DType::bf16), cast(bias, DType::bf16))), DType::f32);
  };
  const Graph plain = drop_dead(fold_constants(build(chain)));
  FusionRules rules;
  rules.chains = true;
  const Graph fused = fuse_chains(plain, rules);
  verify(fused);
  ASSERT_EQ(fused.nodes().size(), 1U) << to_text(fused);
  const HostTensor in[] = {some_input()};
  EXPECT_EQ(evaluate(plain, in)[0], evaluate(fused, in)[0]);
  EXPECT_EQ(work_of(fused).flops, work_of(plain).flops);
  EXPECT_EQ(work_of(fused).read.count(), 24 * 4);
  EXPECT_EQ(work_of(fused).written.count(), 24 * 4);
}

TEST(Passes, a_chain_gives_its_middle_when_somebody_after_it_reads_it) {
  Graph g("g");
  const Value x = g.input("x", kRow);
  const Value a = tanh(x), b = exp(a);
  const int dims[] = {1};
  g.output("sum", reduce_sum(a, dims));
  g.output("y", mul(b, b));
  FusionRules rules;
  rules.chains = true;
  const Graph fused = fuse_chains(g, rules);
  verify(fused);
  const HostTensor in[] = {some_input()};
  EXPECT_EQ(evaluate(g, in)[0], evaluate(fused, in)[0]);
  EXPECT_EQ(evaluate(g, in)[1], evaluate(fused, in)[1]);
}

TEST(Passes, outputs_get_nodes_of_their_own) {
  Graph g("g");
  const Value x = g.input("x", kRow), t = tanh(x);
  g.output("same", x);
  g.output("a", t);
  g.output("b", t);
  g.output("view", reshape(t, Type(DType::f32, {24})));
  const Graph owned = own_outputs(g);
  verify(owned);
  EXPECT_EQ(count_nodes(owned), 1 + 1 + 3);  // tanh, the view, three copies
}

TEST(Passes, the_runner_names_times_skips_and_verifies) {
  const std::vector<Pass> passes{{"merge", merge_common}, {"skipped", [](const Graph&) -> Graph { throw 1; }}};
  const std::string skip[] = {"skipped"};
  std::vector<PassRecord> records;
  run_passes(build([](Graph&, Value x) { return mul(tanh(x), tanh(x)); }), passes, skip, &records);
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].nodes_before, 3);
  EXPECT_EQ(records[0].nodes_after, 2);
  EXPECT_TRUE(records[1].skipped);
}

TEST(Passes, the_runner_names_the_pass_that_broke_the_graph) {
  const auto broken = [](const Graph& graph) {
    Graph changed = graph;
    changed.last_node().operands = {changed.last_node().operands[0]};
    return changed;
  };
  const std::vector<Pass> passes{{"before", drop_dead}, {"the culprit", broken}, {"after", merge_common}};
  for (const std::size_t count : {2, 3}) {  // found by the last verify, and by a later pass that fails
    try {
      run_passes(build([](Graph&, Value x) { return mul(tanh(x), exp(x)); }), std::span(passes).first(count));
      FAIL() << "a node without an operand was not seen";
    } catch (const Failure& f) { EXPECT_EQ(f.error().message.find("after the pass 'the culprit': "), 0u) << f.what(); }
  }
}

TEST(Precision, parameters_stay_and_contractions_compute_in_bf16) {
  Graph g("g");
  const Value w = g.parameter({"w", Type(DType::f32, {6, 5}, {"n", "m"})});
  const Value x = g.input("x", kRow);
  g.output("loss", sum_all(contract(x, w, "bn,nm->bm")));
  const Graph typed = apply_precision(g, Precision{});
  verify(typed);
  EXPECT_EQ(typed.inputs()[0].parameter->type.dtype, DType::f32);
  bool found = false;
  for (const GraphNode& node : typed.nodes()) {
    if (std::string_view(node.op->name) != "contract") continue;
    found = true;
    EXPECT_EQ(typed.type(node.operands[1]).dtype, DType::bf16);
  }
  EXPECT_TRUE(found);
  EXPECT_EQ(typed.type(typed.outputs()[0].value).dtype, DType::f32);
}

// g adds two stacked results of a repeat to inputs, one of them after a cast, and only casts a third. The body does all
// of it, with identical bits.
TEST(Passes, additions_to_and_casts_of_what_a_repeat_stacks_move_into_its_body) {
  const Type stack(DType::f32, {3, 6}, {"layer", "n"}), carry(DType::f32, {6}, {"n"});
  Graph g("g");
  const Value x = g.input("x", carry), w = g.input("w", stack), before = g.input("before", stack),
              narrow = g.input("narrow", stack.with(DType::bf16));
  Graph body("body");
  const Value c = body.input("c", carry), slice = body.input("w", carry);
  const Value next = mul(c, slice);
  body.output("c", next);
  body.output("a", tanh(next));
  body.output("b", exp(slice));
  body.output("d", mul(slice, slice));
  const Repeat r = repeat(std::move(body), 3, std::vector{x}, std::vector{w}, {}, "layer", true);
  g.output("sum", add(before, r.outputs[0]));
  g.output("narrow", add(cast(r.outputs[1], DType::bf16), narrow));
  g.output("c", r.carries[0]);
  g.output("cast", cast(r.outputs[2], DType::bf16));
  const Graph moved = add_in_repeats(g);
  verify(moved);
  ASSERT_EQ(moved.nodes().size(), 1U) << to_text(moved);
  EXPECT_EQ(moved.nodes()[0].attrs.get_int("stacked"), 3);
  std::vector<HostTensor> in;
  for (const Type& type : {carry, stack, stack, stack.with(DType::bf16)}) {
    in.emplace_back(type.dtype, type.shape);
    for (std::int64_t i = 0; i < num_elements(type.shape); ++i) in.back().set(i, 0.07 * static_cast<double>(i) - 0.6);
  }
  const std::vector<HostTensor> was = evaluate(g, in), is = evaluate(moved, in);
  for (std::size_t o = 0; o < was.size(); ++o) {
    EXPECT_TRUE(std::ranges::equal(was[o].bytes(), is[o].bytes())) << "output " << o;
  }
  EXPECT_EQ(work_of(moved).flops, work_of(g).flops);
}

}  // namespace
}  // namespace systole
