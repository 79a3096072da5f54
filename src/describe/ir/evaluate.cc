#include "describe/ir/evaluate.h"

#include <cstring>

namespace systole {

TensorView view_of(HostTensor& tensor, const Type& type) {
  CHECK(tensor.dtype() == type.dtype && tensor.shape() == type.shape, "a tensor {}{} for a value {}",
        name_of(tensor.dtype()), to_string(tensor.shape()), to_string(type));
  return TensorView{type, tensor.bytes().data()};
}

void evaluate_into(const Graph& graph, std::span<const TensorView> inputs, std::span<const TensorView> outputs) {
  CHECK(inputs.size() == graph.inputs().size(), "{} inputs for {} of '{}'", inputs.size(), graph.inputs().size(),
        graph.name());
  std::vector<TensorView> views(static_cast<std::size_t>(graph.num_values()));
  std::vector<HostTensor> owned;
  owned.reserve(views.size());
  auto view = [&](ValueId id) -> TensorView& { return views[static_cast<std::size_t>(id.index)]; };
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const ValueId id = graph.inputs()[i].value;
    CHECK(inputs[i].type == graph.type(id), "input '{}' of '{}' is {}, given {}", graph.inputs()[i].name, graph.name(),
          to_string(graph.type(id)), to_string(inputs[i].type));
    view(id) = inputs[i];
  }
  std::vector<TensorView> operands, results;
  for (const GraphNode& node : graph.nodes()) {
    operands.clear();
    results.clear();
    for (const ValueId id : node.operands) operands.push_back(view(id));
    for (const ValueId id : node.results) {
      const Type& type = graph.type(id);
      view(id) = view_of(owned.emplace_back(type.dtype, type.shape), type);
      results.push_back(view(id));
    }
    node.op->reference(ReferenceCall{node.attrs, operands, results, node.regions});
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const ValueId id = graph.outputs()[i].value;
    CHECK(outputs[i].type == graph.type(id), "output '{}' is {}", graph.outputs()[i].name, to_string(graph.type(id)));
    if (const Bytes bytes = outputs[i].type.bytes(); bytes.count() > 0) {
      std::memcpy(outputs[i].data, view(id).data, static_cast<std::size_t>(bytes.count()));
    }
  }
}

std::vector<HostTensor> evaluate(const Graph& graph, std::span<const HostTensor> inputs) {
  std::vector<HostTensor> copies(inputs.begin(), inputs.end()), results;
  std::vector<TensorView> in, out;
  CHECK(inputs.size() == graph.inputs().size(), "{} inputs for {} of '{}'", inputs.size(), graph.inputs().size(),
        graph.name());
  for (std::size_t i = 0; i < copies.size(); ++i) in.push_back(view_of(copies[i], graph.type(graph.inputs()[i].value)));
  results.reserve(graph.outputs().size());
  for (const GraphOutput& output : graph.outputs()) {
    const Type& type = graph.type(output.value);
    out.push_back(view_of(results.emplace_back(type.dtype, type.shape), type));
  }
  evaluate_into(graph, in, out);
  return results;
}

}  // namespace systole
