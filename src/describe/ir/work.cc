#include "describe/ir/work.h"

#include <algorithm>

namespace systole {

namespace {

std::vector<Type> types_of(const Graph& graph, std::span<const ValueId> values) {
  std::vector<Type> types;
  types.reserve(values.size());
  for (const ValueId id : values) types.push_back(graph.type(id));
  return types;
}

}  // namespace

std::vector<Type> operand_types(const Graph& graph, const GraphNode& node) { return types_of(graph, node.operands); }

Work work_of(const Graph& graph, const GraphNode& node) {
  if (node.op->view) return {};
  const std::vector<Type> operands = types_of(graph, node.operands), results = types_of(graph, node.results);
  Work work = node.op->work(OpCall{*node.op, node.attrs, operands, node.regions}, results);
  if (node.regions.empty() || node.op->name == std::string_view("fusion")) {
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      const auto first = std::find(node.operands.begin(), node.operands.end(), node.operands[i]);
      if (first != node.operands.begin() + static_cast<std::ptrdiff_t>(i) && work.read.count() > 0)
        work.read -= operands[i].bytes();
    }
  }
  if (node.recomputed) work.model_flops = 0;
  return work;
}

Work work_of(const Graph& graph) {
  Work work;
  for (const GraphNode& node : graph.nodes()) work += work_of(graph, node);
  return work;
}

}  // namespace systole
