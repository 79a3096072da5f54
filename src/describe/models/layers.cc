#include "describe/models/layers.h"

#include "describe/ir/layer_names.h"

namespace systole {

Parameters::Parameters(Graph& graph, std::span<const Parameter> parameters) {
  for (const Parameter& p : parameters) values_.emplace(p.name, graph.parameter(p));
}

Value Parameters::operator[](const std::string& name) const {
  const auto found = values_.find(name);
  CHECK(found != values_.end(), "no parameter '{}'", name);
  return found->second;
}

Value Layers::carry(const std::string& name, Value outer) {
  CHECK(stacked_.empty() && shared_.empty(), "carry '{}' after slices", name);
  carries_.push_back(outer);
  return body_.input(name, outer.type());
}

Value Layers::slice(const std::string& name, Value outer) {
  CHECK(shared_.empty(), "slice '{}' after shared values", name);
  stacked_.push_back(outer);
  return body_.input(name, slice_type(outer.type()));
}

Value Layers::share(const std::string& name, Value outer) {
  shared_.push_back(outer);
  return body_.input(name, outer.type());
}

Repeat Layers::run(bool unrolled) {
  if (unrolled) return run_unrolled();
  return repeat(std::move(body_), count_, carries_, stacked_, shared_, "layer");
}

Repeat Layers::run_unrolled() const {
  Graph& graph = *carries_.at(0).graph;
  std::vector<Value> carried = carries_;
  std::vector<std::vector<Value>> outputs(body_.outputs().size() - carries_.size());
  for (std::int64_t layer = 0; layer < count_; ++layer) {
    std::vector<Value> inputs = carried;
    for (const Value& value : stacked_) {
      inputs.push_back(reshape(slice_dim(value, 0, layer, layer + 1), slice_type(value.type())));
    }
    inputs.insert(inputs.end(), shared_.begin(), shared_.end());
    for (std::size_t i = 0; i < carried.size(); ++i) {
      const std::string& name = body_.value_name(body_.inputs()[i].value);
      if (!name.empty()) carried[i].named(name);
    }
    const std::vector<Value> results = inline_graph(graph, body_, inputs);
    const auto split = results.begin() + static_cast<std::ptrdiff_t>(carried.size());
    carried.assign(results.begin(), split);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const Value value = split[static_cast<std::ptrdiff_t>(i)];
      outputs[i].push_back(reshape(value, stacked_type(value.type(), 1, "layer")));
    }
  }
  Repeat result{carried, {}};
  for (const std::vector<Value>& parts : outputs) result.outputs.push_back(concatenate(parts, 0));
  return result;
}

std::optional<std::string> name_in_layer(const std::string& parameter) {
  const std::optional<LayerName> name = layer_name(parameter);
  if (!name) return std::nullopt;
  return name->after.substr(1);
}

std::string stack_name(const std::string& prefix, std::int64_t first, std::int64_t step) {
  return LayerName{prefix, ".", 0, step}.from(first);
}

}  // namespace systole
