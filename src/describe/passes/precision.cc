// Mixed precision as a pass. Models are written in f32; each op's PrecisionRule selects the types of its operands.
// Parameters stay in the parameter type and are cast where they are used. Carries of a repeat have the compute type.
// Scalars are sums and counts and are never narrowed.

#include <algorithm>

#include "describe/ir/op.h"
#include "describe/ir/rewrite.h"
#include "describe/ops/ops.h"
#include "describe/passes/passes.h"

namespace systole {
namespace {

bool is_wide(DType dtype) { return dtype == DType::f32; }

Attrs with_dtype(const GraphNode& node, DType from, DType to) {
  Attrs attrs = node.attrs;
  if (const Attr* dtype = attrs.find("dtype"); dtype != nullptr && std::get<std::string>(*dtype) == name_of(from)) {
    attrs.set("dtype", std::string(name_of(to)));
  }
  return attrs;
}

// Replaces every f32 with `to`: inputs, parameters, constants, results.
Graph retype(const Graph& graph, DType to) {
  const auto input_type = [to](const GraphInput&, const Type& type) {
    return is_wide(type.dtype) ? type.with(to) : type;
  };
  Graph result(graph.name());
  std::vector<Value> map(static_cast<std::size_t>(graph.num_values()));
  for (const GraphInput& input : graph.inputs()) {
    const Type type = input_type(input, graph.type(input.value));
    Value& value = map[static_cast<std::size_t>(input.value.index)];
    if (input.parameter) {
      Parameter p = *input.parameter;
      p.type = type;
      value = result.parameter(std::move(p));
    } else {
      value = result.input(input.name, type);
    }
  }
  for (const GraphNode& node : graph.nodes()) {
    std::vector<Value> operands;
    for (const ValueId id : node.operands) operands.push_back(map[static_cast<std::size_t>(id.index)]);
    std::vector<Graph> regions;
    for (const Graph& region : node.regions) regions.push_back(retype(region, to));
    const std::vector<Value> results =
        result.apply(*node.op, operands, with_dtype(node, DType::f32, to), std::move(regions));
    result.last_node().recomputed = node.recomputed;
    for (std::size_t i = 0; i < results.size(); ++i) {
      map[static_cast<std::size_t>(node.results[i].index)] = results[i];
      results[i].named(graph.value_name(node.results[i]));
    }
  }
  for (const GraphOutput& output : graph.outputs())
    result.output(output.name, map[static_cast<std::size_t>(output.value.index)]);
  return result;
}

class Caster {
 public:
  explicit Caster(const Precision& precision) : precision_(precision) {}

  // `input_types`: types of a body's inputs, chosen by its repeat; empty at the top level.
  Graph run(const Graph& graph, std::span<const Type> input_types,
            std::span<const std::optional<DType>> output_dtypes) {
    Graph to(graph.name());
    std::vector<Value> map(static_cast<std::size_t>(graph.num_values()));
    for (std::size_t i = 0; i < graph.inputs().size(); ++i) {
      const GraphInput& input = graph.inputs()[i];
      Value& value = map[static_cast<std::size_t>(input.value.index)];
      if (input.parameter) {
        Parameter p = *input.parameter;
        if (is_wide(p.type.dtype)) p.type.dtype = precision_.parameter;
        value = to.parameter(std::move(p));
      } else {
        value = to.input(input.name, input_types.empty() ? graph.type(input.value) : input_types[i]);
      }
    }
    for (const GraphNode& node : graph.nodes()) {
      std::vector<Value> operands;
      for (const ValueId id : node.operands) operands.push_back(map[static_cast<std::size_t>(id.index)]);
      const std::vector<Value> results =
          is(node, "repeat") ? repeat_node(to, node, operands) : plain_node(to, node, operands);
      for (std::size_t i = 0; i < results.size(); ++i) {
        map[static_cast<std::size_t>(node.results[i].index)] = results[i];
        const std::string& name = graph.value_name(node.results[i]);
        if (!name.empty()) results[i].named(name);
      }
    }
    for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
      const GraphOutput& output = graph.outputs()[i];
      Value value = map[static_cast<std::size_t>(output.value.index)];
      const DType wanted = graph.type(output.value).dtype;
      if (!output_dtypes.empty() && i < output_dtypes.size() && output_dtypes[i]) {
        value = cast(value, *output_dtypes[i]);
      } else if (output_dtypes.empty() && is_float(wanted)) {
        value = cast(value, wanted);  // the graph's declared output type
      }
      to.output(output.name, value);
    }
    return to;
  }

 private:
  static Value to_type(Value value, DType dtype) {
    return is_float(value.dtype()) && value.dtype() != dtype ? cast(value, dtype) : value;
  }

  std::vector<Value> plain_node(Graph& to, const GraphNode& node, std::vector<Value> operands) {
    switch (node.op->precision) {
      case PrecisionRule::compute:
        for (std::size_t i = 0; i < operands.size(); ++i) {
          // The bias of attention keeps its type: scores are f32 too.
          const bool bias = i + 1 == operands.size() && node.attrs.find("bias_origin") != nullptr;
          if (!bias) operands[i] = to_type(operands[i], precision_.compute);
        }
        return to.apply(*node.op, operands, with_dtype(node, DType::f32, precision_.compute), node.regions);
      case PrecisionRule::mixed:
        if (!operands.empty()) operands[0] = to_type(operands[0], precision_.compute);
        return to.apply(*node.op, operands, node.attrs, node.regions);
      case PrecisionRule::f32:
        if (is(node, "lora_rows")) return {lora_node(to, node, std::move(operands))};
        break;
      case PrecisionRule::follow: return follow(to, node, operands);
    }
    return to.apply(*node.op, operands, node.attrs, node.regions);
  }

  // Adapters take f32, and their result has the type of y, so that rows without an adapter have its bits.
  static Value lora_node(Graph& to, const GraphNode& node, std::vector<Value> operands) {
    const DType y = operands[1].dtype();
    for (Value& operand : operands) operand = to_type(operand, DType::f32);
    return to_type(to.apply(*node.op, operands, node.attrs, node.regions)[0], y);
  }

  // Casts operands of different types to the narrowest of them; if all are scalars, to the widest.
  std::vector<Value> follow(Graph& to, const GraphNode& node, std::vector<Value>& operands) {
    const bool numbers = std::ranges::all_of(operands, [](const Value& v) { return v.type().ndim() == 0; });
    std::optional<DType> chosen;
    for (const Value& v : operands) {
      if (!is_float(v.dtype())) continue;
      const auto bytes = size_of(v.dtype()), so_far = chosen ? size_of(*chosen) : bytes;
      if (!chosen || (numbers ? bytes > so_far : bytes < so_far)) chosen = v.dtype();
    }
    if (chosen) {
      for (Value& v : operands) v = to_type(v, *chosen);
    }
    return to.apply(*node.op, operands, node.attrs, node.regions);
  }

  // Casts carried floats, except scalars, to the compute type. Stacked and shared operands are cast in the body.
  std::vector<Value> repeat_node(Graph& to, const GraphNode& node, std::vector<Value> operands) {
    const auto carries = static_cast<std::size_t>(node.attrs.get_int("carries")),
               stacked = static_cast<std::size_t>(node.attrs.get_int("stacked"));
    std::vector<Type> types;
    std::vector<std::optional<DType>> outputs(node.regions[0].outputs().size());
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (i < carries && is_float(operands[i].dtype())) {
        if (operands[i].type().ndim() > 0) operands[i] = to_type(operands[i], precision_.compute);
        outputs[i] = operands[i].dtype();
      }
      const bool sliced = i >= carries && i < carries + stacked;
      types.push_back(sliced ? slice_type(operands[i].type()) : operands[i].type());
    }
    std::vector<Graph> regions;
    regions.push_back(run(node.regions[0], types, outputs));
    return to.apply(*node.op, operands, node.attrs, std::move(regions));
  }

  Precision precision_;
};

}  // namespace

Graph apply_precision(const Graph& graph, const Precision& precision) {
  if (precision.compute == DType::f64) return retype(graph, DType::f64);
  if (precision.compute == DType::f32 && precision.parameter == DType::f32) return graph;
  return Caster(precision).run(graph, {}, {});
}

}  // namespace systole
