#include "describe/graph/passes/rewrite.h"

#include "describe/graph/op.h"

namespace systole {

bool is(const GraphNode& node, const char* op) { return std::string_view(node.op->name) == op; }

std::vector<Value> move_node(Graph& to, GraphNode&& node, std::span<const Value> operands) {
  std::vector<Value> results = to.apply(*node.op, operands, std::move(node.attrs), std::move(node.regions));
  to.last_node().recomputed = node.recomputed;
  return results;
}

std::vector<Value> copy_node(Graph& to, const GraphNode& node, std::span<const Value> operands) {
  return move_node(to, GraphNode(node), operands);
}

std::vector<Value> copy_inputs(Graph& to, const Graph& from) {
  std::vector<Value> inputs;
  for (const GraphInput& input : from.inputs())
    inputs.push_back(input.parameter ? to.parameter(*input.parameter) : to.input(input.name, from.type(input.value)));
  return inputs;
}

ValueMap::ValueMap(Graph& to, const Graph& from)
    : to_(to), from_(from), values_(static_cast<std::size_t>(from.num_values())) {
  const std::vector<Value> inputs = copy_inputs(to, from);
  for (std::size_t i = 0; i < inputs.size(); ++i) set(from.inputs()[i].value, inputs[i]);
}

void ValueMap::set(ValueId id, Value value) {
  values_[static_cast<std::size_t>(id.index)] = value;
  if (const std::string& name = from_.value_name(id); !name.empty()) to_.set_value_name(value.id, name);
}

std::vector<Value> ValueMap::operands(const GraphNode& node) const {
  std::vector<Value> operands;
  for (const ValueId id : node.operands) operands.push_back((*this)[id]);
  return operands;
}

std::vector<Value> ValueMap::copy(const GraphNode& node) {
  std::vector<Value> results = copy_node(to_, node, operands(node));
  for (std::size_t r = 0; r < results.size(); ++r) set(node.results[r], results[r]);
  return results;
}

void ValueMap::copy_outputs() {
  for (const GraphOutput& output : from_.outputs()) to_.output(output.name, (*this)[output.value]);
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
      changed = GraphNode{original.op, original.attrs, original.operands, original.results, {}, original.recomputed};
      for (const Graph& region : original.regions) changed->regions.push_back(rewrite(region, fn));
    }
    const GraphNode& node = changed ? *changed : original;
    std::optional<std::vector<Value>> results = fn(RewriteCall{to, graph, node, operands});
    if (!results) results = changed ? move_node(to, std::move(*changed), operands) : copy_node(to, node, operands);
    CHECK(results->size() == original.results.size(), "'{}' rewritten to {} results, not {}", original.op->name,
          results->size(), original.results.size());
    for (std::size_t i = 0; i < results->size(); ++i) {
      at(original.results[i]) = (*results)[i];
      const std::string& name = graph.value_name(original.results[i]);
      const Value value = (*results)[i];
      if (!name.empty() && to.value_name(value.id).empty() && to.producer(value.id).valid()) value.named(name);
    }
  }
  for (const GraphOutput& output : graph.outputs()) to.output(output.name, at(output.value));
  return to;
}

}  // namespace systole
