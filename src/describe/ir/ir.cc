#include "describe/ir/ir.h"

#include <algorithm>

#include "describe/ir/op.h"

namespace systole {

const Type& Value::type() const { return graph->type(id); }

Value Value::named(std::string name) const {
  graph->set_value_name(id, std::move(name));
  return *this;
}

Regions::Regions(std::vector<Graph> graphs) {
  if (!graphs.empty()) graphs_ = std::make_shared<const std::vector<Graph>>(std::move(graphs));
}

ValueId Graph::add_value(std::shared_ptr<const Type> type, NodeId node, int result) {
  values_.push_back({std::move(type), "", node, result});
  return ValueId{static_cast<std::int32_t>(values_.size()) - 1};
}

Value Graph::input(std::string name, Type type) {
  const ValueId id = add_value(std::make_shared<const Type>(std::move(type)), NodeId{}, 0);
  inputs_.push_back({id, std::move(name), std::nullopt});
  return Value{this, id};
}

Value Graph::parameter(Parameter parameter) {
  const Value value = input(parameter.name, parameter.type);
  inputs_.back().parameter = std::move(parameter);
  return value;
}

Value Graph::copy_input(const Graph& from, const GraphInput& input) {
  const ValueId id = add_value(from.values_[static_cast<std::size_t>(input.value.index)].type, NodeId{}, 0);
  inputs_.push_back({id, input.name, input.parameter});
  return Value{this, id};
}

void Graph::output(std::string name, Value value) {
  CHECK(value.graph == this, "output '{}' belongs to another graph", name);
  outputs_.push_back({value.id, std::move(name)});
}

void Graph::check_operand(const Value& operand, const OpDef& op) const {
  CHECK(operand.graph == this, "an operand of '{}' belongs to graph '{}', not '{}'", op.name,
        operand.graph == nullptr ? "none" : operand.graph->name(), name_);
}

std::vector<Value> Graph::apply(const OpDef& op, std::span<const Value> operands, Attrs attrs, Regions regions) {
  std::vector<Type> types;
  types.reserve(operands.size());
  GraphNode node;
  for (const Value& operand : operands) {
    check_operand(operand, op);
    types.push_back(operand.type());
    node.operands.push_back(operand.id);
  }
  std::vector<Type> results = op.infer(OpCall{op, attrs, types, regions});
  node.op = &op;
  node.attrs = std::move(attrs);
  node.regions = std::move(regions);
  const NodeId id{static_cast<std::int32_t>(nodes_.size())};
  std::vector<Value> values;
  values.reserve(results.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    node.results.push_back(add_value(std::make_shared<const Type>(std::move(results[i])), id, static_cast<int>(i)));
    values.push_back(Value{this, node.results.back()});
  }
  nodes_.push_back(std::move(node));
  return values;
}

const GraphNode& Graph::copy(const Graph& from, const GraphNode& node, std::span<const Value> operands) {
  const auto same_type = [&](const Value& here, ValueId there) {
    check_operand(here, *node.op);
    return identical(here.type(), from.type(there));
  };
  if (!std::equal(operands.begin(), operands.end(), node.operands.begin(), node.operands.end(), same_type)) {
    apply(*node.op, operands, node.attrs, node.regions);
    nodes_.back().recomputed = node.recomputed;
    return nodes_.back();
  }
  const NodeId id{static_cast<std::int32_t>(nodes_.size())};
  GraphNode copied{node.op, node.attrs, {}, {}, node.regions, node.recomputed};
  for (const Value& operand : operands) copied.operands.push_back(operand.id);
  for (const ValueId result : node.results)
    copied.results.push_back(
        add_value(from.values_[static_cast<std::size_t>(result.index)].type, id, from.result_index(result)));
  nodes_.push_back(std::move(copied));
  return nodes_.back();
}

std::vector<Value> Graph::apply(std::string_view op, std::span<const Value> operands, Attrs attrs, Regions regions) {
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
  std::vector<Value> operands;
  for (const GraphNode& node : from.nodes()) {
    const bool wanted = std::any_of(node.results.begin(), node.results.end(),
                                    [&](ValueId id) { return needed[static_cast<std::size_t>(id.index)]; });
    if (!wanted) continue;
    operands.clear();
    for (const ValueId id : node.operands) operands.push_back(at(id));
    const GraphNode& copied = to.copy(from, node, operands);
    for (std::size_t i = 0; i < copied.results.size(); ++i) {
      at(node.results[i]) = to.value(copied.results[i]);
      if (const std::string& name = from.value_name(node.results[i]); !name.empty())
        to.set_value_name(copied.results[i], name);
    }
  }
  std::vector<Value> outputs;
  for (const GraphOutput& output : from.outputs()) outputs.push_back(at(output.value));
  return outputs;
}

int count_nodes(const Graph& graph) {
  int count = 0;
  for (const GraphNode& node : graph.nodes()) {
    ++count;
    for (const Graph& region : node.regions) count += count_nodes(region);
  }
  return count;
}

}  // namespace systole
