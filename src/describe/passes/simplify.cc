// Constant folding, common subexpression elimination, dead code elimination, and sums and products of narrow values with
// wide results. All keep results bit for bit, except widen_results where it drops a rounding.

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <span>
#include <unordered_map>

#include "describe/ir/evaluate.h"
#include "describe/ir/op.h"
#include "describe/ir/rewrite.h"
#include "describe/ops/ops.h"
#include "describe/passes/passes.h"

namespace systole {
namespace {

std::optional<double> constant_value(const Graph& graph, ValueId id) {
  const NodeId made = graph.producer(id);
  if (!made.valid() || !is(graph.node(made), "constant")) return std::nullopt;
  return graph.node(made).attrs.get_double("value");
}
std::optional<double> constant_value(const Value& value) { return constant_value(*value.graph, value.id); }

bool any_node(const Graph& graph, bool (*test)(const Graph&, const GraphNode&)) {
  return std::ranges::any_of(graph.nodes(), [&](const GraphNode& node) {
    return test(graph, node) ||
           std::ranges::any_of(node.regions, [&](const Graph& region) { return any_node(region, test); });
  });
}

// Evaluates the op on one element of each constant operand.
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

// The operand that the node returns unchanged.
std::optional<std::size_t> unchanged_operand(const Graph& graph, const GraphNode& node, const auto& id_of) {
  if (!is(node, "mul") && !is(node, "div")) return std::nullopt;
  if (constant_value(graph, id_of(1)) == 1.0) return 0;
  if (is(node, "mul") && constant_value(graph, id_of(0)) == 1.0) return 1;
  return std::nullopt;
}

bool of_constants(const Graph& graph, const GraphNode& node, const auto& id_of) {
  if (node.operands.empty() || node.results.size() != 1) return false;
  if (!node.op->elementwise && !is(node, "broadcast") && !is(node, "reshape") && !is(node, "transpose")) return false;
  for (std::size_t i = 0; i < node.operands.size(); ++i) {
    if (!constant_value(graph, id_of(i))) return false;
  }
  return true;
}

bool may_fold(const Graph& graph, const GraphNode& node) {
  const auto id_of = [&](std::size_t i) { return node.operands[i]; };
  return unchanged_operand(graph, node, id_of) || of_constants(graph, node, id_of);
}

std::optional<std::vector<Value>> fold(const RewriteCall& call) {
  const GraphNode& node = call.node;
  const auto id_of = [&](std::size_t i) { return call.operands[i].id; };
  if (const auto same = unchanged_operand(call.to, node, id_of)) return std::vector<Value>{call.operands[*same]};
  if (!of_constants(call.to, node, id_of)) return std::nullopt;
  const Type& type = call.from.type(node.results[0]);
  const double value = node.op->elementwise ? evaluate_element(call) : *constant_value(call.operands[0]);
  if (!holds_exactly(type, value)) return std::nullopt;
  return std::vector<Value>{constant(call.to, type, value)};
}

// Finds the nodes of a graph that compute the same as an earlier node.
class Merger {
 public:
  explicit Merger(const Graph& graph) : graph_(graph), alike_(graph.nodes().size(), -1) {
    for (int v = 0; v < graph.num_values(); ++v) same_.push_back(ValueId{v});
    std::unordered_map<std::uint64_t, int> first;  // first node by key
    first.reserve(graph.nodes().size());
    std::vector<int> next(graph.nodes().size(), -1);  // next node of the same key
    for (int n = 0; n < static_cast<int>(graph.nodes().size()); ++n) {
      if (!may_merge(node(n))) continue;
      const auto [entry, fresh] = first.try_emplace(key_of(node(n)), n);
      if (fresh) continue;
      for (int other = entry->second; !merge(n, other); other = next[index(other)]) {
        if (next[index(other)] >= 0) continue;
        next[index(other)] = n;
        break;
      }
    }
  }

  bool found() const { return found_; }
  bool goes(int n) const { return alike_[index(n)] >= 0; }
  // The value that replaces `id`.
  ValueId same(ValueId id) const { return same_[index(id.index)]; }

 private:
  static std::size_t index(int i) { return static_cast<std::size_t>(i); }
  const GraphNode& node(int n) const { return graph_.nodes()[index(n)]; }

  // An all_to_all is never merged: every device must run the same sequence of exchanges, even if one sends the same
  // twice.
  static bool may_merge(const GraphNode& node) {
    return node.regions.empty() && !node.results.empty() && !is(node, "all_to_all");
  }

  // A hash of op and operands; merge() compares attributes.
  std::uint64_t key_of(const GraphNode& node) const {
    std::uint64_t key = reinterpret_cast<std::uintptr_t>(node.op);
    for (const ValueId id : node.operands)
      key = key * 0x9E3779B97F4A7C15 + static_cast<std::uint64_t>(same(id).index) + 1;
    return key;
  }

  bool merge(int n, int other) {
    const GraphNode &a = node(n), &b = node(other);
    const auto is_same = [&](ValueId x, ValueId y) { return same(x) == same(y); };
    if (a.op != b.op || !(a.attrs == b.attrs) ||
        !std::equal(a.operands.begin(), a.operands.end(), b.operands.begin(), b.operands.end(), is_same))
      return false;
    for (std::size_t r = 0; r < a.results.size(); ++r) same_[index(a.results[r].index)] = b.results[r];
    alike_[index(n)] = other;
    return found_ = true;
  }

  const Graph& graph_;
  std::vector<int> alike_;     // per node: the equal earlier one; -1: none
  std::vector<ValueId> same_;  // per value
  bool found_ = false;
};

bool has_common(const Graph& graph) {
  return Merger(graph).found() || std::ranges::any_of(graph.nodes(), [](const GraphNode& node) {
           return std::ranges::any_of(node.regions, has_common);
         });
}

std::vector<int> count_readers(const Graph& graph) {
  std::vector<int> readers(static_cast<std::size_t>(graph.num_values()), 0);
  for (const GraphNode& node : graph.nodes()) {
    for (const ValueId id : node.operands) ++readers[static_cast<std::size_t>(id.index)];
  }
  for (const GraphOutput& output : graph.outputs())
    readers[static_cast<std::size_t>(output.value.index)] += 2;  // an output always counts as another reader
  return readers;
}

bool is_narrow(DType dtype) { return dtype == DType::bf16 || dtype == DType::f16; }

// Whether a cast to f32 can merge with the sum that it reads, if the sum has no other reader.
bool may_widen(const Graph& graph, const GraphNode& node) {
  if (!is(node, "cast") || graph.type(node.results[0]).dtype != DType::f32) return false;
  if (!is_narrow(graph.type(node.operands[0]).dtype)) return false;
  const NodeId sum = graph.producer(node.operands[0]);
  return sum.valid() && (is(graph.node(sum), "contract") || is(graph.node(sum), "reduce_sum"));
}

// Whether a node sums, in f32, what a cast widened to f32: the sum of the narrow values with an f32 result has the same
// bits, and the wide copy is not needed.
bool may_sum_narrow(const Graph& graph, const GraphNode& node) {
  if (!is(node, "reduce_sum") || graph.type(node.results[0]).dtype != DType::f32) return false;
  const NodeId made = graph.producer(node.operands[0]);
  return made.valid() && is(graph.node(made), "cast") && graph.type(node.operands[0]).dtype == DType::f32 &&
         is_narrow(graph.type(graph.node(made).operands[0]).dtype);
}

// Applies the op of `like` to these operands, with a result in f32.
std::vector<Value> apply_wide(Graph& to, const GraphNode& like, std::span<const Value> operands) {
  Attrs attrs = like.attrs;
  attrs.set("dtype", std::string(name_of(DType::f32)));
  const bool recomputed = like.recomputed;
  const OpDef& op = *like.op;  // `like` may move when a node is added
  std::vector<Value> results = to.apply(op, operands, std::move(attrs));
  to.last_node().recomputed = recomputed;
  return results;
}

// Per value: whether one of these outputs needs it.
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

// Whether a graph has nodes that no output needs, or repeat results that no output needs.
bool has_dead(const Graph& graph) {
  std::vector<std::size_t> all(graph.outputs().size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  const std::vector<bool> needed = needed_by(graph, all);
  return std::ranges::any_of(graph.nodes(), [&](const GraphNode& node) {
    const auto is_needed = [&](ValueId id) { return needed[static_cast<std::size_t>(id.index)]; };
    if (is(node, "repeat"))
      return !std::ranges::all_of(node.results, is_needed) || std::ranges::any_of(node.regions, has_dead);
    return std::ranges::none_of(node.results, is_needed);
  });
}

// The graph with only these outputs and the nodes that they need; repeats too.
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

Graph fold_constants(const Graph& graph) { return any_node(graph, may_fold) ? rewrite(graph, fold) : graph; }

Graph merge_common(const Graph& graph) {
  if (!has_common(graph)) return graph;
  const Merger merger(graph);
  Graph to(graph.name());
  ValueMap map(to, graph);
  for (int n = 0; n < static_cast<int>(graph.nodes().size()); ++n) {
    const GraphNode& node = graph.nodes()[static_cast<std::size_t>(n)];
    if (merger.goes(n)) {
      for (const ValueId id : node.results) map.set_same(id, map[merger.same(id)]);
    } else if (is(node, "repeat")) {
      map.copy(node, one_region(merge_common(node.regions[0])));
    } else {
      map.copy(node);
    }
  }
  map.copy_outputs();
  return to;
}

Graph drop_dead(const Graph& graph) {
  if (!has_dead(graph)) return graph;
  std::vector<std::size_t> all(graph.outputs().size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return with_outputs(graph, all);
}

Graph with_only(const Graph& graph, std::string_view output) {
  for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
    if (graph.outputs()[i].name != output) continue;
    return graph.outputs().size() == 1 ? graph : with_outputs(graph, std::array{i});
  }
  fail(error(ErrorKind::not_found, "graph '{}' has no output '{}'", graph.name(), output));
}

Graph widen_results(const Graph& graph, bool narrow_sums) {
  if (!any_node(graph, may_widen) && !(narrow_sums && any_node(graph, may_sum_narrow))) return graph;
  std::unordered_map<const Graph*, std::vector<int>> readers;
  return rewrite(graph, [&](const RewriteCall& call) -> std::optional<std::vector<Value>> {
    if (call.to.nodes().empty()) readers.erase(&call.from);  // the address may be that of an earlier body
    if (narrow_sums && may_sum_narrow(call.from, call.node)) {
      const GraphNode& made = call.to.node(call.to.producer(call.operands[0].id));
      if (!is(made, "cast")) return std::nullopt;  // it has merged with what it cast
      return apply_wide(call.to, call.node, std::array{call.to.value(made.operands[0])});
    }
    if (!may_widen(call.from, call.node)) return std::nullopt;
    auto [entry, fresh] = readers.try_emplace(&call.from);
    if (fresh) entry->second = count_readers(call.from);
    if (entry->second[static_cast<std::size_t>(call.node.operands[0].index)] != 1) return std::nullopt;
    const GraphNode& copied = call.to.node(call.to.producer(call.operands[0].id));  // its copy; drop_dead removes it
    std::vector<Value> operands;
    for (const ValueId operand : copied.operands) operands.push_back(call.to.value(operand));
    return apply_wide(call.to, copied, operands);
  });
}

}  // namespace systole
