#include "describe/autodiff/autodiff.h"

#include <algorithm>

#include "describe/autodiff/autodiff_split.h"
#include "describe/ir/rewrite.h"
#include "describe/ops/ops.h"

namespace systole {

namespace {

std::vector<bool> wanted_inputs(const Graph& graph, std::span<const std::string> from) {
  std::vector<bool> wanted;
  for (const GraphInput& input : graph.inputs()) {
    wanted.push_back(input.parameter ? input.parameter->trainable
                                     : std::find(from.begin(), from.end(), input.name) != from.end());
  }
  return wanted;
}

std::size_t output_of(const Graph& graph, std::string_view name) {
  const auto found = std::find_if(graph.outputs().begin(), graph.outputs().end(),
                                  [&](const GraphOutput& output) { return output.name == name; });
  if (found == graph.outputs().end())
    fail(error(ErrorKind::not_found, "graph '{}' has no output '{}'", graph.name(), name));
  return static_cast<std::size_t>(found - graph.outputs().begin());
}

// The index of the output; nothing for an empty name.
std::optional<int> loss_of(const Graph& graph, std::string_view name) {
  if (name.empty()) return std::nullopt;
  const std::size_t o = output_of(graph, name);
  const Type& type = graph.type(graph.outputs()[o].value);
  if (!is_float(type.dtype) || type.ndim() != 0)
    fail(error(ErrorKind::invalid, "the loss must be a float scalar, not {}", to_string(type)));
  return static_cast<int>(o);
}

}  // namespace

Differentiated differentiate(const Graph& loss, std::string_view loss_output, const RecomputePolicy& policy) {
  return differentiate_chunk(loss, loss_output, {}, {}, policy);
}

Differentiated differentiate_chunk(const Graph& chunk, std::string_view loss_output, std::span<const std::string> from,
                                   std::span<const std::string> given, const RecomputePolicy& policy) {
  const std::optional<int> seed = loss_of(chunk, loss_output);
  const std::vector<bool> wanted = wanted_inputs(chunk, from), available(chunk.inputs().size(), true);
  std::vector<bool> cotangents(chunk.outputs().size(), false);
  for (const std::string& name : given) cotangents[output_of(chunk, name)] = true;
  Split parts = split(Request{chunk, wanted, available, cotangents, seed, policy, false});

  Differentiated result{std::move(parts.forward), Graph(chunk.name() + ".backward")};
  std::vector<Value> inputs;
  for (std::size_t i = 0; i < parts.sources.size(); ++i) {
    const GraphInput& input = parts.backward.inputs()[i];
    const Source& source = parts.sources[i];
    const Type& type = parts.backward.type(input.value);
    inputs.push_back(
        input.parameter ? result.backward.parameter(*input.parameter)
        : source.kind == Source::Kind::cotangent
            ? result.backward.input("cotangent." + chunk.outputs()[static_cast<std::size_t>(source.index)].name, type)
            : result.backward.input(input.name, type));
  }
  // Every wanted input gets a gradient, zeros where no output depends on it.
  const std::vector<Value> gradients = inline_graph(result.backward, parts.backward, inputs);
  for (const bool parameters : {true, false}) {
    for (std::size_t i = 0; i < chunk.inputs().size(); ++i) {
      const GraphInput& input = chunk.inputs()[i];
      if (!wanted[i] || input.parameter.has_value() != parameters) continue;
      const std::optional<int> g = parts.gradients[i];
      result.backward.output("gradient." + input.name, g ? gradients[static_cast<std::size_t>(*g)]
                                                         : constant(result.backward, chunk.type(input.value), 0));
    }
  }
  return result;
}

std::vector<std::string> trained_outputs(const Graph& chunk, std::span<const std::string> from) {
  const std::vector<bool> active = dependents(chunk, wanted_inputs(chunk, from));
  std::vector<std::string> names;
  for (const GraphOutput& output : chunk.outputs()) {
    if (active[static_cast<std::size_t>(output.value.index)]) names.push_back(output.name);
  }
  return names;
}

}  // namespace systole
