#include "describe/partition/serving.h"

#include "describe/ir/served_adapters.h"

namespace systole {
namespace {

bool is_cache(const std::string& name) { return name.starts_with("cache."); }

void add_function(ProgramBuilder& builder, const std::string& name, const Graph& graph, const Precision& precision,
                  std::span<const Int8Weight> weights) {
  std::vector<Pass> early{{"precision", [&](const Graph& g) { return apply_precision(g, precision); }}};
  if (!weights.empty())
    early.push_back({"int8 weights", [&](const Graph& g) { return with_int8_weights(g, weights); }});
  Graph typed = run_passes(graph, early);
  builder.add_parameters(typed);
  Bindings inputs, outputs;
  const auto bind = [&](Bindings& bindings, const std::string& key, const Type& type, Residence residence) {
    const std::string value = is_cache(key) || is_served_adapter(key) ? key : name + "/" + key;
    bindings[key] = {value, false};
    if (!builder.has_value(value) && is_served_adapter(key)) {
      builder.add_value(
          {key, type, Residence::parameter, 1, Parameter{key, type, {Init::Kind::zeros, 0}, false, false}, 0, 0});
      return;
    }
    if (!builder.has_value(value))
      builder.add_value({value, type, is_cache(key) ? Residence::cache : residence, 1, std::nullopt, 0, 0});
  };
  for (const GraphInput& input : typed.inputs()) {
    if (!input.parameter) bind(inputs, input.name, typed.type(input.value), Residence::input);
  }
  for (const GraphOutput& output : typed.outputs())
    bind(outputs, output.name, typed.type(output.value), Residence::output);
  const int f = builder.add_function(name, std::move(typed), inputs, outputs);
  builder.add_schedule({name, {{f, 0, 0, Stream::compute, {}}}});
}

}  // namespace

std::vector<Int8Weight> int8_weights_of(const ServingGraphs& graphs) {
  std::vector<const Graph*> all;
  for (const auto& [function, graph] : graphs) all.push_back(&graph);
  std::vector<Int8Weight> weights = int8_weights(all);
  if (weights.empty()) fail(error(ErrorKind::unsupported, "weights in int8 of a model without products of parameters"));
  return weights;
}

Program serving_program(const std::string& name, const ServingGraphs& graphs, const Mesh& mesh, DType parameter,
                        DType compute, const Target& target, const WorkspaceOf& workspace_of) {
  if (!mesh.trivial()) {
    fail(error(ErrorKind::unsupported, "a mesh of {} devices ({}): only one device is partitioned yet",
               mesh.num_devices(), to_string(mesh))
             .hinted("leave out 'mesh'"));
  }
  const bool int8 = parameter == DType::i8;
  const Precision precision{int8 ? DType::f32 : parameter, compute, DType::f32, DType::f32};
  const std::vector<Int8Weight> weights = int8 ? int8_weights_of(graphs) : std::vector<Int8Weight>();
  ProgramBuilder builder(name, mesh, target, workspace_of);
  for (const auto& [function, graph] : graphs) add_function(builder, function, graph, precision, weights);
  return builder.finish();
}

}  // namespace systole
