#include "describe/ir/rewrite.h"

#include <cstring>

#include "describe/ir/op.h"

namespace systole {

bool is(const GraphNode& node, const char* op) { return std::strcmp(node.op->name, op) == 0; }

Regions one_region(Graph graph) {
  std::vector<Graph> graphs;
  graphs.push_back(std::move(graph));
  return graphs;
}

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
  inputs.reserve(from.inputs().size());
  for (const GraphInput& input : from.inputs()) inputs.push_back(to.copy_input(from, input));
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

void ValueMap::copy(const GraphNode& node) {
  operands_.clear();
  for (const ValueId id : node.operands) operands_.push_back((*this)[id]);
  const GraphNode& copied = to_.copy(from_, node, operands_);
  for (std::size_t r = 0; r < copied.results.size(); ++r) set(node.results[r], to_.value(copied.results[r]));
}

void ValueMap::copy(const GraphNode& node, Regions regions) {
  const std::vector<Value> results =
      move_node(to_, {node.op, node.attrs, {}, {}, std::move(regions), node.recomputed}, operands(node));
  CHECK(results.size() == node.results.size(), "'{}' copied with {} results, not {}", node.op->name, results.size(),
        node.results.size());
  for (std::size_t r = 0; r < results.size(); ++r) set(node.results[r], results[r]);
}

void ValueMap::set_same(ValueId id, Value value) {
  values_[static_cast<std::size_t>(id.index)] = value;
  if (to_.value_name(value.id).empty() && to_.producer(value.id).valid()) value.named(from_.value_name(id));
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
    if (!input_type) {
      at(input.value) = to.copy_input(graph, input);
      continue;
    }
    const Type type = input_type(input, graph.type(input.value));
    if (input.parameter) {
      Parameter p = *input.parameter;
      p.type = type;
      at(input.value) = to.parameter(std::move(p));
    } else {
      at(input.value) = to.input(input.name, type);
    }
  }
  const auto stands = [&](ValueId id, Value value) {
    at(id) = value;
    const std::string& name = graph.value_name(id);
    if (!name.empty() && to.value_name(value.id).empty() && to.producer(value.id).valid()) value.named(name);
  };
  std::vector<Value> operands;
  for (const GraphNode& original : graph.nodes()) {
    operands.clear();
    for (const ValueId id : original.operands) operands.push_back(at(id));
    std::optional<GraphNode> changed;
    if (is(original, "repeat")) {
      std::vector<Graph> regions;
      for (const Graph& region : original.regions) regions.push_back(rewrite(region, fn));
      changed = GraphNode{original.op,      original.attrs,     original.operands,
                          original.results, std::move(regions), original.recomputed};
    }
    const GraphNode& node = changed ? *changed : original;
    std::optional<std::vector<Value>> results = fn(RewriteCall{to, graph, node, operands});
    if (!results && !changed) {
      const GraphNode& copied = to.copy(graph, original, operands);
      for (std::size_t i = 0; i < copied.results.size(); ++i) stands(original.results[i], to.value(copied.results[i]));
      continue;
    }
    if (!results) results = move_node(to, std::move(*changed), operands);
    CHECK(results->size() == original.results.size(), "'{}' rewritten to {} results, not {}", original.op->name,
          results->size(), original.results.size());
    for (std::size_t i = 0; i < results->size(); ++i) stands(original.results[i], (*results)[i]);
  }
  for (const GraphOutput& output : graph.outputs()) to.output(output.name, at(output.value));
  return to;
}

}  // namespace systole
