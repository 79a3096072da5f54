#include "describe/partition/serving.h"

#include <algorithm>

#include "describe/ir/served_adapters.h"
#include "describe/partition/serving_layouts.h"
#include "describe/partition/spmd.h"
#include "ground/tensor/int4.h"

namespace systole {
namespace {

bool is_cache(const std::string& name) { return name.starts_with("cache."); }
bool is_coordinate(const std::string& name) { return name == coordinate_name(kServingAxis); }

using WholeValues = std::map<std::string, CutValue>;  // by the name of the graph's input or output

// What each device of the mesh computes.
Graph cut_graph(const Graph& whole, const Mesh& mesh, WholeValues& values) {
  const std::vector<AxisRule> rules = serving_rules();
  SpmdRequest request{mesh, rules, {}, {}, {}};
  for (const GraphInput& input : whole.inputs()) {
    const Type& type = whole.type(input.value);
    const Layout layout = input.parameter                 ? serving_layout(*input.parameter, mesh)
                          : is_cache(input.name)          ? cache_layout(type, mesh)
                          : is_served_adapter(input.name) ? adapter_layout(input.name, type, mesh)
                                                          : Layout::whole(mesh);
    request.inputs.emplace(input.name, layout);
    values.insert_or_assign(input.name, CutValue{type, layout});
  }
  for (const GraphOutput& output : whole.outputs()) {
    const Type& type = whole.type(output.value);
    const Layout layout = is_cache(output.name) ? cache_layout(type, mesh) : Layout::whole(mesh);
    request.outputs.emplace(output.name, layout);
    values.insert_or_assign(output.name, CutValue{type, layout});
  }
  return spmd(whole, request).graph;
}

const Int8Weight* weight_from(std::span<const Int8Weight> weights, const std::string& parameter) {
  const auto found = std::ranges::find_if(weights, [&](const Int8Weight& w) { return w.from.name == parameter; });
  return found == weights.end() ? nullptr : &*found;
}

// The graph of one device with its parts of the weights. The partitioner does not see packed weights: it has cut the
// products in f32, of which each is some outputs of a whole one, and takes whole rows of x. So rows of x are quantised by
// the same maximum, and sums are of the same integers, as on one device.
Graph with_parts(ProgramBuilder& builder, const Graph& cut, const Mesh& mesh, std::span<const Int8Weight> weights) {
  std::vector<Int8Weight> parts;
  const auto add = [&](const std::string& name, const Type& whole, const Type& part, const Int8Weight& weight) {
    if (builder.has_value(name)) return;
    Layout layout = Layout::whole(mesh);
    if (!(whole == part)) layout.at[0] = weight.stacked ? 1 : 0;  // rows, or panels of them
    builder.add_value({name, part, Residence::parameter, 1, Parameter{name, whole, {}, false, false, weight.from.stage},
                       0, 0, CutValue{whole, layout}});
  };
  for (const Int8Weight& weight : weights) {
    const Int8Weight& part = parts.emplace_back(part_of_weight(weight, mesh));
    const bool is_read = std::ranges::any_of(
        cut.inputs(), [&](const GraphInput& input) { return input.parameter && input.name == weight.from.name; });
    if (!is_read) continue;
    add(weight.q8_name(), weight.q8(), part.q8(), weight);
    add(weight.scale_name(), weight.scale(), part.scale(), weight);
  }
  return with_int8_weights(cut, parts);
}

void add_function(ProgramBuilder& builder, const std::string& name, const Graph& graph, const Mesh& mesh,
                  const Precision& precision, std::span<const Int8Weight> weights) {
  std::vector<Pass> early{{"precision", [&](const Graph& g) { return apply_precision(g, precision); }}};
  if (!weights.empty() && mesh.trivial())
    early.push_back({"int8 weights", [&](const Graph& g) { return with_int8_weights(g, weights); }});
  if (!mesh.trivial()) early.insert(early.end(), {{"fold_constants", fold_constants}, {"merge_common", merge_common}});
  Graph typed = run_passes(graph, early);
  WholeValues wholes;
  if (!mesh.trivial()) {
    for (const GraphInput& input : typed.inputs()) {
      if (!input.parameter || builder.has_value(input.name) || weight_from(weights, input.name) != nullptr) continue;
      const Layout layout = serving_layout(*input.parameter, mesh);
      builder.add_value({input.name, local_type(input.parameter->type, layout, mesh), Residence::parameter, 1,
                         input.parameter, 0, 0, CutValue{input.parameter->type, layout}});
    }
    typed = cut_graph(typed, mesh, wholes);
    if (!weights.empty()) typed = with_parts(builder, typed, mesh, weights);
  }
  builder.add_parameters(typed);
  Bindings inputs, outputs;
  const auto bind = [&](Bindings& bindings, const std::string& key, const Type& type, Residence residence) {
    const std::string value = is_cache(key) || is_served_adapter(key) || is_coordinate(key) ? key : name + "/" + key;
    bindings[key] = {value, false};
    if (builder.has_value(value)) return;
    ProgramValue added{value, type, is_cache(key) ? Residence::cache : residence, 1, std::nullopt, 0, 0};
    if (const auto whole = wholes.find(key); whole != wholes.end()) added.cut = whole->second;
    if (is_served_adapter(key)) {
      added.residence = Residence::parameter;
      added.parameter = Parameter{key, added.cut ? added.cut->whole : type, {Init::Kind::zeros, 0}, false, false};
    }
    builder.add_value(std::move(added));
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

Int8Weight part_of_weight(const Int8Weight& weight, const Mesh& mesh) {
  if (mesh.trivial()) return weight;
  const Layout layout = serving_layout(weight.from, mesh);
  if (!layout.cut()) return weight;
  CHECK(layout.at[0] - (weight.stacked ? 1 : 0) == weight.order[0], "the outputs of '{}' are cut within",
        weight.from.name);
  Int8Weight part = weight;
  part.from.type = local_type(weight.from.type, layout, mesh);
  if (weight.bits == 4 && part.rows() % kInt4Panel != 0) {
    fail(error(ErrorKind::unsupported, "'{}' in int4 has {} outputs on each of {} devices, which cuts a panel of {}",
               weight.from.name, part.rows(), mesh.num_devices(), kInt4Panel)
             .hinted("--weights int8, or serve.parameter: i8; or fewer ranks or devices"));
  }
  return part;
}

Program serving_program(const std::string& name, const ServingGraphs& graphs, const Mesh& mesh, DType parameter,
                        DType compute, const Target& target, const WorkspaceOf& workspace_of) {
  const bool packed = is_packed_type(parameter);
  const Precision precision{packed ? DType::f32 : parameter, compute, DType::f32, DType::f32};
  const std::vector<Int8Weight> weights = packed ? int8_weights_of(graphs, parameter) : std::vector<Int8Weight>();
  ProgramBuilder builder(name, mesh, target, workspace_of);
  builder.set_overlap(false);
  for (const auto& [function, graph] : graphs) add_function(builder, function, graph, mesh, precision, weights);
  return builder.finish();
}

}  // namespace systole
