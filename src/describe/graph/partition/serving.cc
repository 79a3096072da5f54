#include "describe/graph/partition/serving.h"

namespace systole {
namespace {

bool is_cache(const std::string& name) { return name.starts_with("cache."); }

void add_function(ProgramBuilder& builder, const std::string& name, const Graph& graph, const Precision& precision) {
  const std::vector<Pass> early{{"precision", [&](const Graph& g) { return apply_precision(g, precision); }}};
  Graph typed = run_passes(graph, early, {}, &builder.records());
  builder.add_parameters(typed);
  Bindings inputs, outputs;
  const auto bind = [&](Bindings& bindings, const std::string& key, const Type& type, Residence residence) {
    const std::string value = is_cache(key) ? key : name + "/" + key;
    bindings[key] = {value, false};
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

Program serving_program(const std::string& name, const ServingGraphs& graphs, const Mesh& mesh, DType parameter,
                        const Target& target, const WorkspaceOf& workspace_of) {
  if (!mesh.trivial()) {
    fail(error(ErrorKind::unsupported, "a mesh of {} devices ({}): only one device is partitioned yet",
               mesh.num_devices(), to_string(mesh))
             .hinted("leave out 'mesh'"));
  }
  const Precision precision{parameter, DType::f32, DType::f32, DType::f32};
  ProgramBuilder builder(name, mesh, target, workspace_of);
  for (const auto& [bucket, graph] : graphs.prefill)
    add_function(builder, fmt::format("prefill.{}", bucket), graph, precision);
  add_function(builder, "decode", graphs.decode, precision);
  return builder.finish();
}

}  // namespace systole
