#include "describe/graph/work.h"

#include <algorithm>

namespace systole {

std::vector<Type> operand_types(const Graph& graph, const GraphNode& node) {
  std::vector<Type> types;
  types.reserve(node.operands.size());
  for (const ValueId id : node.operands) types.push_back(graph.type(id));
  return types;
}

std::vector<Type> result_types(const Graph& graph, const GraphNode& node) {
  std::vector<Type> types;
  types.reserve(node.results.size());
  for (const ValueId id : node.results) types.push_back(graph.type(id));
  return types;
}

Work work_of(const Graph& graph, const GraphNode& node) {
  if (node.op->view) return {};
  const std::vector<Type> operands = operand_types(graph, node), results = result_types(graph, node);
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
