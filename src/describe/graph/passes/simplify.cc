// Constant folding, common subexpressions, dead code, and wider results of sums. None changes a bit of a result except
// widen_results, which drops a rounding.

#include <algorithm>
#include <cstring>
#include <numeric>
#include <span>
#include <unordered_map>

#include "describe/graph/evaluate.h"
#include "describe/graph/op.h"
#include "describe/graph/ops/ops.h"
#include "describe/graph/passes/passes.h"
#include "describe/graph/passes/rewrite.h"

namespace systole {
namespace {

const GraphNode* producer_of(const Value& value) {
  const NodeId id = value.graph->producer(value.id);
  return id.valid() ? &value.graph->node(id) : nullptr;
}

std::optional<double> constant_value(const Value& value) {
  const GraphNode* node = producer_of(value);
  if (node == nullptr || !is(*node, "constant")) return std::nullopt;
  return node->attrs.get_double("value");
}

// The op on single elements that hold the constants.
double evaluate_element(const RewriteCall& call) {
  std::vector<HostTensor> owned;
  std::vector<TensorView> operands, results;
  owned.reserve(call.operands.size() + 1);
  for (const Value& v : call.operands) {
    const double value = *constant_value(v);
    owned.emplace_back(v.dtype(), Shape{}, std::span(&value, 1));
    operands.push_back(TensorView{Type(v.dtype(), {}), owned.back().bytes().data()});
  }
  const Type type(call.from.type(call.node.results[0]).dtype, {});
  owned.emplace_back(type.dtype, Shape{});
  results.push_back(TensorView{type, owned.back().bytes().data()});
  call.node.op->reference(ReferenceCall{call.node.attrs, operands, results});
  return results[0].raw(0);
}

bool holds_exactly(const Type& type, double value) {
  return is_float(type.dtype) ? rounded(type.dtype, value) == value : std::abs(value) < 0x1p53;
}

std::optional<std::vector<Value>> fold(const RewriteCall& call) {
  const GraphNode& node = call.node;
  if (is(node, "mul") || is(node, "div")) {
    if (constant_value(call.operands[1]) == 1.0) return std::vector<Value>{call.operands[0]};
    if (is(node, "mul") && constant_value(call.operands[0]) == 1.0) return std::vector<Value>{call.operands[1]};
  }
  if (call.operands.empty() || node.results.size() != 1) return std::nullopt;
  const bool foldable = node.op->elementwise || is(node, "broadcast") || is(node, "reshape") || is(node, "transpose");
  if (!foldable || !std::all_of(call.operands.begin(), call.operands.end(),
                                [](const Value& v) { return constant_value(v).has_value(); })) {
    return std::nullopt;
  }
  const Type& type = call.from.type(node.results[0]);
  const double value = node.op->elementwise ? evaluate_element(call) : *constant_value(call.operands[0]);
  if (!holds_exactly(type, value)) return std::nullopt;
  return std::vector<Value>{constant(call.to, type, value)};
}

// Nodes of equal ops and operands; their attributes are for is_same to compare.
std::uint64_t key_of(const RewriteCall& call) {
  std::uint64_t key = reinterpret_cast<std::uintptr_t>(call.node.op);
  for (const Value& v : call.operands) key = key * 0x9E3779B97F4A7C15 + static_cast<std::uint64_t>(v.id.index) + 1;
  return key;
}

bool is_same(const RewriteCall& call, const GraphNode& other) {
  return other.op == call.node.op && other.attrs == call.node.attrs &&
         std::equal(other.operands.begin(), other.operands.end(), call.operands.begin(), call.operands.end(),
                    [](ValueId id, const Value& value) { return id == value.id; });
}

std::vector<int> count_readers(const Graph& graph) {
  std::vector<int> readers(static_cast<std::size_t>(graph.num_values()), 0);
  for (const GraphNode& node : graph.nodes()) {
    for (const ValueId id : node.operands) ++readers[static_cast<std::size_t>(id.index)];
  }
  for (const GraphOutput& output : graph.outputs())
    readers[static_cast<std::size_t>(output.value.index)] += 2;  // never the only one
  return readers;
}

// Per value, whether these outputs need it.
std::vector<bool> needed_by(const Graph& graph, std::span<const std::size_t> outputs) {
  std::vector<bool> needed(static_cast<std::size_t>(graph.num_values()), false);
  for (const std::size_t i : outputs) needed[static_cast<std::size_t>(graph.outputs()[i].value.index)] = true;
  for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) {
    if (!std::any_of(node->results.begin(), node->results.end(),
                     [&](ValueId id) { return needed[static_cast<std::size_t>(id.index)]; }))
      continue;
    for (const ValueId id : node->operands) needed[static_cast<std::size_t>(id.index)] = true;
  }
  return needed;
}

// The graph with these of its outputs and what they need; in repeats too.
Graph with_outputs(const Graph& graph, std::span<const std::size_t> outputs) {
  const std::vector<bool> needed = needed_by(graph, outputs);
  const auto is_needed = [&](ValueId id) { return needed[static_cast<std::size_t>(id.index)]; };
  Graph to(graph.name());
  ValueMap map(to, graph);
  for (const GraphNode& node : graph.nodes()) {
    if (std::none_of(node.results.begin(), node.results.end(), is_needed)) continue;
    if (!is(node, "repeat")) {
      map.copy(node);
      continue;
    }
    const auto carries = static_cast<std::size_t>(node.attrs.get_int("carries"));
    std::vector<std::size_t> kept;
    for (std::size_t i = 0; i < node.results.size(); ++i) {
      if (i < carries || is_needed(node.results[i])) kept.push_back(i);
    }
    std::vector<Graph> regions;
    regions.push_back(with_outputs(node.regions[0], kept));
    const std::vector<Value> results =
        move_node(to, {node.op, node.attrs, {}, {}, std::move(regions), node.recomputed}, map.operands(node));
    for (std::size_t k = 0; k < kept.size(); ++k) map.set(node.results[kept[k]], results[k]);
  }
  for (const std::size_t i : outputs) to.output(graph.outputs()[i].name, map[graph.outputs()[i].value]);
  return to;
}

}  // namespace

Graph fold_constants(const Graph& graph) { return rewrite(graph, fold); }

Graph merge_common(const Graph& graph) {
  using Results = std::vector<Value>;  // of a node of the graph that is being built
  std::unordered_map<const Graph*, std::unordered_map<std::uint64_t, std::vector<Results>>> seen;
  return rewrite(graph, [&](const RewriteCall& call) -> std::optional<Results> {
    if (call.to.nodes().empty()) seen[&call.to].clear();  // a body built where an earlier one was
    // Exchanges are a sequence that all devices run, though one of them may send the same twice.
    if (is(call.node, "all_to_all")) return std::nullopt;
    if (!call.node.regions.empty() || call.node.results.empty()) return std::nullopt;
    std::vector<Results>& alike = seen[&call.to][key_of(call)];
    for (const Results& results : alike) {
      if (is_same(call, *producer_of(results[0]))) return results;
    }
    return alike.emplace_back(copy_node(call.to, call.node, call.operands));
  });
}

Graph drop_dead(const Graph& graph) {
  std::vector<std::size_t> all(graph.outputs().size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return with_outputs(graph, all);
}

Graph widen_results(const Graph& graph) {
  std::unordered_map<const Graph*, std::vector<int>> readers;
  return rewrite(graph, [&](const RewriteCall& call) -> std::optional<std::vector<Value>> {
    if (call.to.nodes().empty()) readers.erase(&call.from);  // a body read where an earlier one was
    if (!is(call.node, "cast") || call.from.type(call.node.results[0]).dtype != DType::f32) return std::nullopt;
    const NodeId id = call.from.producer(call.node.operands[0]);
    if (!id.valid()) return std::nullopt;
    const GraphNode& sum = call.from.node(id);
    if (!is(sum, "contract") && !is(sum, "reduce_sum")) return std::nullopt;
    auto [entry, fresh] = readers.try_emplace(&call.from);
    if (fresh) entry->second = count_readers(call.from);
    if (entry->second[static_cast<std::size_t>(call.node.operands[0].index)] != 1) return std::nullopt;
    const GraphNode& copied = *producer_of(call.operands[0]);  // its copy, which dead code removal takes away
    std::vector<Value> operands;
    for (const ValueId operand : copied.operands) operands.push_back(call.to.value(operand));
    Attrs attrs = copied.attrs;
    attrs.set("dtype", std::string(name_of(DType::f32)));
    const bool recomputed = copied.recomputed;
    const OpDef& op = *copied.op;
    std::vector<Value> results = call.to.apply(op, operands, std::move(attrs));
    call.to.last_node().recomputed = recomputed;
    return results;
  });
}

}  // namespace systole
