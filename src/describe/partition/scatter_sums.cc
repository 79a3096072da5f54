#include "describe/partition/scatter_sums.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "describe/ir/rewrite.h"
#include "describe/ops/ops.h"
#include "describe/partition/spmd.h"

namespace systole {
namespace {

bool has_node(const Graph& graph, const char* op) {
  return std::ranges::any_of(graph.nodes(), [op](const GraphNode& node) {
    return is(node, op) || std::ranges::any_of(node.regions, [op](const Graph& body) { return has_node(body, op); });
  });
}

}  // namespace

Graph scatter_sums(const Graph& graph) {
  if (!has_node(graph, "take_part")) return graph;
  return rewrite(graph, [](const RewriteCall& call) -> std::optional<std::vector<Value>> {
    if (!is(call.node, "take_part")) return std::nullopt;
    const NodeId sum = call.to.producer(call.operands[0].id), index = call.to.producer(call.operands[1].id);
    if (!sum.valid() || index.valid()) return std::nullopt;
    const GraphNode& reduce = call.to.node(sum);
    if (!is(reduce, "all_reduce") || reduce.attrs.get_string("kind") != "sum") return std::nullopt;
    const std::string axis = reduce.attrs.get_string("axis");
    const auto input = call.to.find_input(coordinate_name(axis));
    if (!input || call.to.inputs()[static_cast<std::size_t>(*input)].value != call.operands[1].id) return std::nullopt;
    const Value terms = call.to.value(reduce.operands[0]);
    return std::vector<Value>{reduce_scatter(terms, axis, call.node.attrs.get_int("parts"),
                                             static_cast<int>(call.node.attrs.get_int("dim")))};
  });
}

}  // namespace systole
