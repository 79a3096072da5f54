#include "describe/partition/serving.h"

#include <algorithm>

#include "describe/ir/served_adapters.h"
#include "ground/tensor/int4.h"

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

std::vector<Int8Weight> int8_weights_of(const ServingGraphs& graphs, DType parameter) {
  std::vector<const Graph*> all;
  for (const auto& [function, graph] : graphs) all.push_back(&graph);
  std::vector<Int8Weight> weights = int8_weights(all, parameter == kInt4 ? 4 : 8);
  if (weights.empty())
    fail(error(ErrorKind::unsupported, "weights in {} of a model without products of parameters",
               packed_name(parameter)));
  if (parameter == kInt4 && std::ranges::none_of(weights, [](const Int8Weight& w) { return w.bits == 4; })) {
    fail(error(ErrorKind::unsupported,
               "weights in int4 of a model whose layers have no matrix of {}n outputs and {}n inputs, as panels take",
               kInt4Panel, kInt4Group)
             .hinted("--weights int8, or serve.parameter: i8, takes matrices of any size"));
  }
  return weights;
}

Program serving_program(const std::string& name, const ServingGraphs& graphs, const Mesh& mesh, DType parameter,
                        const Target& target, const WorkspaceOf& workspace_of) {
  if (!mesh.trivial()) {
    fail(error(ErrorKind::unsupported, "a mesh of {} devices ({}): only one device is partitioned yet",
               mesh.num_devices(), to_string(mesh))
             .hinted("leave out 'mesh'"));
  }
  const bool packed = is_packed_type(parameter);
  const Precision precision{packed ? DType::f32 : parameter, DType::f32, DType::f32, DType::f32};
  const std::vector<Int8Weight> weights = packed ? int8_weights_of(graphs, parameter) : std::vector<Int8Weight>();
  ProgramBuilder builder(name, mesh, target, workspace_of);
  for (const auto& [function, graph] : graphs) add_function(builder, function, graph, precision, weights);
  return builder.finish();
}

}  // namespace systole
