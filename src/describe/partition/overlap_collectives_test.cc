#include "describe/partition/overlap_collectives.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "describe/ir/op.h"
#include "describe/ir/text.h"
#include "describe/ops/ops.h"
#include "describe/partition/builder.h"
#include "describe/program/memory.h"
#include "describe/program/overlap.h"

namespace systole {
namespace {

// Two layers of x ← x·w: w is sharded over two devices, and each layer reduce-scatters its gradient of w. Then an
// all_reduce, whose result is read two nodes later.
Graph sharded_layers(std::int64_t count = 2) {
  Graph body("layer");
  const Value x = body.input("x", Type(DType::f32, {3, 4})), w = body.input("w", Type(DType::f32, {2, 4}));
  const Value whole = all_gather(cast(w, DType::bf16), "fsdp", 2, 0);
  const Value y = cast(contract(cast(x, DType::bf16), whole, "be,eh->bh"), DType::f32);
  const Value terms = contract(x, y, "be,bh->eh");
  body.output("x", tanh(y));
  body.output("terms", add(reduce_scatter(terms, "fsdp", 2, 0), w));

  Graph g("forward");
  const Value in = g.input("x", Type(DType::f32, {3, 4}));
  Parameter p;
  p.name = "w", p.type = Type(DType::f32, {count, 2, 4});
  const Value stored = g.parameter(p);
  const Repeat layers = repeat(std::move(body), count, std::array{in}, std::array{stored}, {}, "layer", false);
  const Value sum = exp(layers.carries[0]);
  g.output("other", tanh(sum));
  g.output("sum", neg(all_reduce(sum, "fsdp", 2)));
  g.output("terms", copy(layers.outputs[0]));
  return g;
}

std::vector<std::string> ops_of(const Graph& graph) {
  std::vector<std::string> ops;
  for (const GraphNode& node : graph.nodes()) {
    const Overlap overlap = overlap_of(node);
    ops.push_back(std::string(node.op->name) + (overlap == Overlap::ahead    ? " ahead"
                                                : overlap == Overlap::reader ? " early"
                                                                             : ""));
  }
  return ops;
}

const GraphNode& the_repeat(const Graph& graph) {
  for (const GraphNode& node : graph.nodes()) {
    if (node.op->name == std::string_view("repeat")) return node;
  }
  throw std::logic_error("no repeat");
}

TEST(OverlapCollectives, gathers_go_ahead_and_sums_begin_where_they_are_made) {
  const Graph graph = overlap_collectives(sharded_layers());
  const std::vector<std::string> body{"cast ahead", "all_gather ahead",     "cast", "contract", "cast",
                                      "contract",   "reduce_scatter early", "tanh", "add"};
  EXPECT_EQ(ops_of(the_repeat(graph).regions[0]), body);
  const std::vector<std::string> top{"repeat", "exp", "all_reduce early", "tanh", "neg", "copy"};
  EXPECT_EQ(ops_of(graph), top);
  EXPECT_EQ(to_text(parse_graph(to_text(graph), "test").value()), to_text(graph));
  EXPECT_EQ(to_text(overlap_collectives(graph)), to_text(graph));
}

TEST(OverlapCollectives, one_layer_has_nothing_to_go_ahead_of) {
  const Graph graph = overlap_collectives(sharded_layers(1));
  const std::vector<std::string> ops = ops_of(the_repeat(graph).regions[0]);
  EXPECT_EQ(std::ranges::count_if(ops, [](const std::string& op) { return op.starts_with("all_gather"); }), 1);
  for (const std::string& op : ops) EXPECT_FALSE(op.ends_with("ahead")) << op;
}

// Gathers of activations are not prefetched.
TEST(OverlapCollectives, only_stored_parameters_go_ahead) {
  Graph body("layer");
  const Value x = body.input("x", Type(DType::f32, {4})), r = body.input("r", Type(DType::f32, {2}));
  body.output("x", add(x, all_gather(r, "model", 2, 0)));
  Graph g("backward");
  const Value in = g.input("x", Type(DType::f32, {4})), residual = g.input("residual", Type(DType::f32, {3, 2}));
  g.output("x", repeat(std::move(body), 3, std::array{in}, std::array{residual}, {}, "layer", true).carries[0]);
  EXPECT_EQ(ops_of(the_repeat(overlap_collectives(g)).regions[0]), (std::vector<std::string>{"all_gather", "add"}));
}

Program program_of(bool overlap) {
  Target target;
  target.name = target.kind = "null";
  ProgramBuilder builder("layers", Mesh::parse("fsdp=2").value(), target, nullptr);
  builder.set_overlap(overlap);
  Graph graph = sharded_layers();
  builder.add_parameters(graph);
  const auto add = [&](const std::string& name, const Type& type, Residence residence) {
    ProgramValue value;
    value.name = name, value.type = type, value.residence = residence;
    builder.add_value(value);
  };
  add("x", graph.type(graph.inputs()[0].value), Residence::input);
  for (const GraphOutput& output : graph.outputs()) add(output.name, graph.type(output.value), Residence::output);
  builder.add_function("forward", std::move(graph), {}, {});
  builder.add_schedule({"once", {Action{0}}});
  return builder.finish();
}

// Prefetched values are double-buffered, and the verifier checks both buffers.
TEST(OverlapCollectives, two_places_for_what_is_made_ahead_are_planned_and_proved) {
  Program with = program_of(true);
  const Program without = program_of(false);
  EXPECT_GT(with.functions[0].scratch, without.functions[0].scratch);
  EXPECT_NE(hash_of(with), hash_of(without));
  // Puts another value into the twin of the gathered parameter.
  const Function& f = with.functions[0];
  const Graph* body = nullptr;
  Placement* places = nullptr;
  for (std::size_t n = 0; n < f.graph.nodes().size(); ++n) {
    if (f.graph.nodes()[n].regions.empty() || f.graph.nodes()[n].op->name != std::string_view("repeat")) continue;
    body = &f.graph.nodes()[n].regions[0];
    places = &with.functions[0].placement.nodes[n].regions[0];
  }
  ASSERT_NE(body, nullptr);
  std::optional<std::int64_t> twin;
  for (const GraphNode& node : body->nodes()) {
    if (node.op->name == std::string_view("all_gather")) {
      const ValueId id = node.results[0];
      twin = places->values[static_cast<std::size_t>(id.index)].offset + twin_stride(body->type(id).bytes());
    }
  }
  ASSERT_TRUE(twin);
  bool moved = false;
  for (const GraphNode& node : body->nodes()) {
    Location& place = places->values[static_cast<std::size_t>(node.results[0].index)];
    if (moved || overlap_of(node) == Overlap::ahead || place.kind != Location::Kind::scratch) continue;
    place.offset = *twin;
    moved = true;
  }
  ASSERT_TRUE(moved);
  EXPECT_THROW(verify(with), Failure);
}

TEST(OverlapCollectives, what_is_sent_stays_until_its_reader) {
  const Graph graph = overlap_collectives(sharded_layers());
  const std::vector<int> last = last_uses(graph);
  for (int n = 0; n < static_cast<int>(graph.nodes().size()); ++n) {
    const GraphNode& node = graph.nodes()[static_cast<std::size_t>(n)];
    if (node.op->name != std::string_view("all_reduce")) continue;
    EXPECT_EQ(first_reader(graph, n), 4);
    EXPECT_EQ(last[static_cast<std::size_t>(node.operands[0].index)], 4);
  }
}

}  // namespace
}  // namespace systole
