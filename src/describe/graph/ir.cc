#include "describe/graph/ir.h"

#include <algorithm>

#include "describe/graph/op.h"

namespace systole {

const Type& Value::type() const { return graph->type(id); }

Value Value::named(std::string name) const {
  graph->set_value_name(id, std::move(name));
  return *this;
}

ValueId Graph::add_value(Type type, NodeId node, int result) {
  values_.push_back({std::move(type), "", node, result});
  return ValueId{static_cast<std::int32_t>(values_.size()) - 1};
}

Value Graph::input(std::string name, Type type) {
  const ValueId id = add_value(std::move(type), NodeId{}, 0);
  inputs_.push_back({id, std::move(name), std::nullopt});
  return Value{this, id};
}

Value Graph::parameter(Parameter parameter) {
  const Value value = input(parameter.name, parameter.type);
  inputs_.back().parameter = std::move(parameter);
  return value;
}

void Graph::output(std::string name, Value value) {
  CHECK(value.graph == this, "output '{}' belongs to another graph", name);
  outputs_.push_back({value.id, std::move(name)});
}

std::vector<Value> Graph::apply(const OpDef& op, std::span<const Value> operands, Attrs attrs,
                                std::vector<Graph> regions) {
  std::vector<Type> types;
  types.reserve(operands.size());
  GraphNode node;
  node.operands.reserve(operands.size());
  for (const Value& operand : operands) {
    CHECK(operand.graph == this, "an operand of '{}' belongs to graph '{}', not '{}'", op.name,
          operand.graph == nullptr ? "none" : operand.graph->name(), name_);
    types.push_back(operand.type());
    node.operands.push_back(operand.id);
  }
  std::vector<Type> results = op.infer(OpCall{op, attrs, types, regions});
  node.op = &op;
  node.attrs = std::move(attrs);
  node.regions = std::move(regions);
  const NodeId id{static_cast<std::int32_t>(nodes_.size())};
  std::vector<Value> values;
  for (std::size_t i = 0; i < results.size(); ++i) {
    node.results.push_back(add_value(std::move(results[i]), id, static_cast<int>(i)));
    values.push_back(Value{this, node.results.back()});
  }
  nodes_.push_back(std::move(node));
  return values;
}

std::vector<Value> Graph::apply(std::string_view op, std::span<const Value> operands, Attrs attrs,
                                std::vector<Graph> regions) {
  return apply(op_named(op), operands, std::move(attrs), std::move(regions));
}

std::optional<int> Graph::find_input(std::string_view name) const {
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].name == name) return static_cast<int>(i);
  }
  return std::nullopt;
}

Value Graph::input_named(std::string_view name) {
  const std::optional<int> at = find_input(name);
  if (!at) fail(error(ErrorKind::not_found, "graph '{}' has no input '{}'", name_, name));
  return Value{this, inputs_[static_cast<std::size_t>(*at)].value};
}

ValueId Graph::output_named(std::string_view name) const {
  for (const GraphOutput& output : outputs_) {
    if (output.name == name) return output.value;
  }
  fail(error(ErrorKind::not_found, "graph '{}' has no output '{}'", name_, name));
}

std::vector<Value> inline_graph(Graph& to, const Graph& from, std::span<const Value> inputs) {
  CHECK(inputs.size() == from.inputs().size(), "{} values for {} inputs of '{}'", inputs.size(), from.inputs().size(),
        from.name());
  std::vector<bool> needed(static_cast<std::size_t>(from.num_values()), false);
  auto mark = [&](ValueId id) { needed[static_cast<std::size_t>(id.index)] = true; };
  for (const GraphOutput& output : from.outputs()) mark(output.value);
  for (auto node = from.nodes().rbegin(); node != from.nodes().rend(); ++node) {
    const bool wanted = std::any_of(node->results.begin(), node->results.end(),
                                    [&](ValueId id) { return needed[static_cast<std::size_t>(id.index)]; });
    if (wanted) std::for_each(node->operands.begin(), node->operands.end(), mark);
  }
  std::vector<Value> map(static_cast<std::size_t>(from.num_values()));
  auto at = [&](ValueId id) -> Value& { return map[static_cast<std::size_t>(id.index)]; };
  for (std::size_t i = 0; i < inputs.size(); ++i) at(from.inputs()[i].value) = inputs[i];
  for (const GraphNode& node : from.nodes()) {
    const bool wanted = std::any_of(node.results.begin(), node.results.end(),
                                    [&](ValueId id) { return needed[static_cast<std::size_t>(id.index)]; });
    if (!wanted) continue;
    std::vector<Value> operands;
    for (const ValueId id : node.operands) operands.push_back(at(id));
    const std::vector<Value> results = to.apply(*node.op, operands, node.attrs, node.regions);
    to.last_node().recomputed = node.recomputed;
    for (std::size_t i = 0; i < results.size(); ++i) {
      at(node.results[i]) = results[i];
      if (const std::string& name = from.value_name(node.results[i]); !name.empty())
        to.set_value_name(results[i].id, name);
    }
  }
  std::vector<Value> outputs;
  for (const GraphOutput& output : from.outputs()) outputs.push_back(at(output.value));
  return outputs;
}

}  // namespace systole
