#include "describe/graph/passes/rewrite.h"

#include "describe/graph/op.h"

namespace systole {

bool is(const GraphNode& node, const char* op) { return std::string_view(node.op->name) == op; }

std::vector<Value> copy_node(Graph& to, const GraphNode& node, std::span<const Value> operands) {
  std::vector<Value> results = to.apply(*node.op, operands, node.attrs, node.regions);
  to.last_node().recomputed = node.recomputed;
  return results;
}

Graph rewrite(const Graph& graph, const RewriteFn& fn,
              const std::function<Type(const GraphInput&, const Type&)>& input_type) {
  Graph to(graph.name());
  std::vector<Value> map(static_cast<std::size_t>(graph.num_values()));
  const auto at = [&](ValueId id) -> Value& { return map[static_cast<std::size_t>(id.index)]; };
  for (const GraphInput& input : graph.inputs()) {
    const Type type = input_type ? input_type(input, graph.type(input.value)) : graph.type(input.value);
    if (input.parameter) {
      Parameter p = *input.parameter;
      p.type = type;
      at(input.value) = to.parameter(std::move(p));
    } else {
      at(input.value) = to.input(input.name, type);
    }
  }
  for (const GraphNode& original : graph.nodes()) {
    std::vector<Value> operands;
    for (const ValueId id : original.operands) operands.push_back(at(id));
    std::optional<GraphNode> changed;
    if (is(original, "repeat")) {
      changed = original;
      for (Graph& region : changed->regions) region = rewrite(region, fn);
    }
    const GraphNode& node = changed ? *changed : original;
    std::optional<std::vector<Value>> results = fn(RewriteCall{to, graph, node, operands});
    if (!results) results = copy_node(to, node, operands);
    CHECK(results->size() == node.results.size(), "'{}' rewritten to {} results, not {}", node.op->name,
          results->size(), node.results.size());
    for (std::size_t i = 0; i < results->size(); ++i) {
      at(node.results[i]) = (*results)[i];
      const std::string& name = graph.value_name(node.results[i]);
      const Value value = (*results)[i];
      if (!name.empty() && to.value_name(value.id).empty() && to.producer(value.id).valid()) value.named(name);
    }
  }
  for (const GraphOutput& output : graph.outputs()) to.output(output.name, at(output.value));
  return to;
}

}  // namespace systole
