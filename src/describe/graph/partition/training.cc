#include "describe/graph/partition/training.h"

#include <algorithm>

#include "describe/graph/layer_names.h"
#include "describe/graph/partition/probe.h"
#include "describe/graph/partition/training_builder.h"
#include "describe/graph/passes/rewrite.h"

namespace systole {
namespace {

bool is_scalar_input(const std::string& name) { return name == "seed" || name == "step"; }

}  // namespace

TrainingBuilder::TrainingBuilder(const std::string& name, const Mesh& mesh, const Strategy& strategy,
                                 const Target& target, const WorkspaceOf& workspace_of, std::int64_t device)
    : strategy_(strategy),
      layouts_(mesh, strategy.sharding),
      builder_(name, mesh, target, workspace_of),
      pipeline_(strategy.pipeline) {
  pipeline_.stages = 1;
  if (const auto axis = mesh.find(kPipelineAxis); axis.ok()) {
    pipeline_.stages = static_cast<int>(mesh.axes()[axis.value()].size);
    stage_ = static_cast<int>(mesh.coordinates(device)[axis.value()]);
  }
  if (staged() && (exact() || !strategy.probes.empty())) {
    fail(error(ErrorKind::unsupported, "a pipeline has no {} yet", exact() ? "exact training" : "probes")
             .hinted(exact() ? "train.exact: false, or a mesh without the axis pipe" : "run it without probes"));
  }
  if (mesh.find(kContextAxis).ok() && (exact() || !strategy.probes.empty())) {
    fail(error(ErrorKind::unsupported, "a mesh with an axis '{}' has no {} yet", kContextAxis,
               exact() ? "exact training" : "probes")
             .hinted(exact() ? "train.exact: false, or a mesh without the axis context" : "run it without probes"));
  }
  // Devices whose graphs differ would begin their collectives in other places.
  builder_.set_overlap(strategy.overlap && !exact());
  if (!exact()) return;
  workers_ = exact_workers(layouts_, strategy.logical_shards, device);
  const int count = static_cast<int>(workers_.count);
  const ShardRange mine = shards_of(strategy.logical_shards, count, static_cast<int>(workers_.me));
  turns_ = {strategy.logical_shards, mine.first, mine.count, 0, strategy.microbatches, 0};
  // Where a layer's parameters are gathered as they are read, all devices take as many turns.
  const bool gathers = workers_.parts > 1 && strategy.sharding.stored == ShardingStrategy::Stored::parameters;
  if (gathers) turns_.idle = shards_of(strategy.logical_shards, count, 0).count - mine.count;
  steps_ = tree_steps(mine, strategy.microbatches == 1);
}

Program TrainingBuilder::build(const Graph& loss, const std::optional<Graph>& evaluation) {
  std::vector<Pass> early{{"precision", [&](const Graph& g) { return apply_precision(g, strategy_.precision); }},
                          {"fold_constants", fold_constants},
                          {"merge_common", merge_common}};
  if (const auto context = layouts_.mesh().find(kContextAxis); context.ok()) {
    const std::int64_t parts = layouts_.mesh().axes()[*context].size;
    early.insert(early.begin(), {"zigzag", [this, parts](const Graph& g) {
                                   return in_zigzag(g, parts, strategy_.sharding.context_keys);
                                 }});
  }
  const Graph typed = run_passes(loss, early, {}, &builder_.records());
  if (staged()) {
    add_stage(typed);
  } else {
    add_parameters(typed);
    add_data_inputs(typed, "", slots());
  }
  if (trained_.empty()) fail(error(ErrorKind::invalid, "nothing to train: every parameter is frozen"));
  scalar_ = strategy_.precision.compute == DType::f64 ? DType::f64 : DType::f32;
  moment_ = trained_.front().type.dtype;
  add_output("loss", scalar_, exact() || staged() ? 1 : microbatches());
  sums_ = {"loss"};
  for (const GraphOutput& output : typed.outputs()) {
    if (output.name == "loss" || staged()) continue;
    sums_.push_back(output.name);
    add_output(output.name, scalar_, exact() ? 1 : microbatches());
  }
  for (const std::string& name : sums_) {
    if (exact()) add_value(of_shard(name), Type(scalar_, {}), layouts_.whole(), Residence::partial_sum, slots());
  }
  for (const Parameter& p : trained_) {
    add_value("gradient/" + p.name, p.type.with(reduce_type(p)), gradient_layout(p), Residence::gradient,
              exact() ? slots_of(steps_) : 1, p);
  }
  add_state();
  staged() ? add_chunks() : add_forward_backward(typed);
  if (exact()) {
    add_exact_sums();
  } else if (!alone()) {
    add_reduce();
  }
  if (staged()) add_stage_sums();
  add_update();
  if (exact()) {
    add_exact_schedule();
  } else if (staged()) {
    add_pipeline_schedule();
  } else {
    add_train_schedule();
  }
  if (evaluation) add_evaluation(*evaluation, early);
  if (strategy_.snapshot) add_snapshot();
  if (exact()) builder_.set_shards(turns_);
  return strategy_.placed ? builder_.finish() : builder_.unplaced();
}

void TrainingBuilder::add_value(const std::string& name, const Type& whole, const Layout& layout, Residence residence,
                                int slots, std::optional<Parameter> parameter) {
  ProgramValue value{
      name, local_type(whole, layout, layouts_.mesh()), residence, slots, std::move(parameter), 0, 0, std::nullopt};
  if (!alone()) value.cut = CutValue{whole, layout};
  builder_.add_value(std::move(value));
}

void TrainingBuilder::add_parameters(const Graph& graph) {
  for (const GraphInput& input : graph.inputs()) {
    if (!input.parameter || builder_.has_value(input.name)) continue;
    Parameter p = *input.parameter;
    if (staged()) p.stage = *users_.at(p.name).begin();
    add_value(p.name, p.type, layouts_.parameter(p), Residence::parameter, 1, p);
    if (p.trainable) trained_.push_back(p);
  }
}

SpmdGraph TrainingBuilder::cut(const Graph& whole, LayoutsByName inputs, const LayoutsByName& outputs,
                               bool fill) const {
  LayoutsByName used;
  for (const GraphInput& input : whole.inputs()) {
    if (inputs.contains(input.name)) continue;
    if (input.parameter && !fill) used.emplace(input.name, layouts_.read(*input.parameter));
    inputs.emplace(input.name,
                   input.parameter ? layouts_.parameter(*input.parameter) : row_layout(whole.type(input.value)));
  }
  // Exact: a shard is not cut, and parameters that are stored in parts are gathered.
  const std::span<const AxisRule> rules = exact() && !fill ? std::span<const AxisRule>() : layouts_.rules();
  SpmdGraph cut = spmd(whole, {layouts_.mesh(), rules, std::move(inputs), std::move(used), outputs, fill, !exact()});
  CHECK(!has_zigzag(cut.graph), "rows of '{}' are not cut along '{}'", whole.name(), kContextAxis);
  return cut;
}

int TrainingBuilder::add_function(const std::string& name, Graph graph, Bindings in, Bindings out,
                                  std::vector<std::string> donated) {
  for (const Axis& axis : layouts_.mesh().axes()) {
    const std::string input = coordinate_name(axis.name), value = "coordinate/" + axis.name;
    if (!graph.find_input(input)) continue;
    in[input] = {value, false};
    if (!builder_.has_value(value)) add_value(value, Type(DType::i64, {}), layouts_.whole(), Residence::input, 1);
  }
  return builder_.add_function(name, std::move(graph), in, out, std::move(donated));
}

DType TrainingBuilder::reduce_type(const Parameter& p) const {
  return p.type.dtype == DType::f64 ? DType::f64 : strategy_.precision.reduce;
}

void TrainingBuilder::add_data_inputs(const Graph& graph, const std::string& prefix, int slots) {
  for (const GraphInput& input : graph.inputs()) {
    if (input.parameter || is_between(input.name) || builder_.has_value(prefix + input.name)) continue;
    const Type& type = graph.type(input.value);
    if (!divides(type, row_layout(type), layouts_.mesh())) {
      fail(error(ErrorKind::invalid, "'{}' {} does not divide over the devices ({})", input.name, to_string(type),
                 to_string(layouts_.mesh())));
    }
    if (exact() && prefix.empty() && type.ndim() > 0) turns_.rows = type.size(0);
    add_value(prefix + input.name, type, row_layout(type), Residence::input, is_scalar_input(input.name) ? 1 : slots);
  }
}

void TrainingBuilder::add_output(const std::string& name, DType dtype, int slots) {
  add_value(name, Type(dtype, {}), layouts_.whole(), Residence::output, slots);
}

Bindings TrainingBuilder::data_bindings(const Graph& graph, const std::string& prefix, bool by_microbatch) const {
  Bindings bindings;
  for (const GraphInput& input : graph.inputs()) {
    if (!input.parameter) bindings[input.name] = {prefix + input.name, by_microbatch && !is_scalar_input(input.name)};
  }
  return bindings;
}

void TrainingBuilder::add_forward_backward(const Graph& typed) {
  const std::vector<Pass> late{{"merge_common", merge_common}, {"drop_dead", drop_dead}};
  Differentiated parts = differentiate(typed, "loss", strategy_.recompute);
  parts.forward = run_passes(std::move(parts.forward), late, {}, &builder_.records());
  parts.backward = run_passes(std::move(parts.backward), late, {}, &builder_.records());
  if (!strategy_.probes.empty())
    parts.forward = with_probes(parts.forward, probes_matching(parts.forward, strategy_.probes, also_probed()).value());

  LayoutsByName wanted, residual_layouts;
  for (const std::string& name : sums_) wanted.emplace(name, layouts_.whole());
  for (const GraphOutput& output : parts.forward.outputs()) {
    if (output.name.starts_with("probe/")) wanted.emplace(output.name, layouts_.whole());
  }
  std::vector<Type> whole_types;  // of the outputs
  for (const GraphOutput& output : parts.forward.outputs()) whole_types.push_back(parts.forward.type(output.value));
  if (!alone()) {
    SpmdGraph forward = cut(parts.forward, {}, wanted);
    parts.forward = std::move(forward.graph);
    residual_layouts = std::move(forward.outputs);
  }
  Bindings in = data_bindings(parts.forward, "", true), out;
  for (const std::string& name : sums_) out[name] = {exact() ? of_shard(name) : name, true};
  std::vector<std::string> residuals;
  for (std::size_t o = 0; o < parts.forward.outputs().size(); ++o) {
    const GraphOutput& output = parts.forward.outputs()[o];
    if (out.contains(output.name)) continue;
    if (output.name.starts_with("probe/")) {
      add_value(output.name, whole_types[o], layouts_.whole(), Residence::output, 1);
      out[output.name] = {output.name, false};
      continue;
    }
    const Layout& layout = alone() ? layouts_.whole() : residual_layouts.at(output.name);
    add_value(output.name, whole_types[o], layout, Residence::residual, 1);
    out[output.name] = {output.name, true};
    residuals.push_back(output.name);
  }
  Bindings back_in = data_bindings(parts.backward, "", true);
  for (const std::string& residual : residuals) back_in[residual] = {residual, true};
  add_function("forward", std::move(parts.forward), in, out);
  const auto backward = [&](const char* name, bool adds) {
    add_backward({name, parts.backward, adds, trained_, back_in, {}, residuals, residual_layouts, {}});
  };
  if (exact()) {
    backward("backward", false);
    const bool adds = std::any_of(steps_.begin(), steps_.end(), [](const TreeStep& step) { return step.adds; });
    if (adds || microbatches() > 1) backward("backward_add", true);
  } else {
    backward("backward", microbatches() > 1);
    if (microbatches() > 1) add_zero();
  }
}

void TrainingBuilder::add_backward(Backward part) {
  const std::vector<Pass> sums{{"fold_constants", fold_constants}, {"add_in_repeats", add_in_repeats}};
  Graph backward = run_passes(in_reduce_type(part), sums, {}, &builder_.records());
  for (const Parameter& p : part.parameters) {
    part.in["sum." + p.name] = part.out["gradient." + p.name] = {"gradient/" + p.name, false, exact()};
    part.inputs["sum." + p.name] = gradient_layout(p);
    part.outputs.emplace("gradient." + p.name, gradient_layout(p));
  }
  if (!alone()) backward = cut(backward, part.inputs, part.outputs).graph;
  add_function(part.name, std::move(backward), part.in, part.out, part.dead);
}

std::vector<std::string> TrainingBuilder::also_probed() const {
  std::vector<std::string> names{"parameters", "gradients"};
  for (const Parameter& p : trained_) {
    const std::optional<LayerName> layers = layer_name(p.name);
    for (std::int64_t i = 0; i < (layers ? p.type.size(0) : 1); ++i) {
      std::string name = layers ? layers->of(i) : p.name;
      names.push_back("gradient/" + name);
      names.push_back(std::move(name));
    }
  }
  return names;
}

Graph TrainingBuilder::in_reduce_type(const Backward& part) {
  Graph graph(part.whole.name());
  const std::vector<Value> inputs = copy_inputs(graph, part.whole);
  std::vector<Value> sums;
  for (const Parameter& p : part.parameters) {
    if (part.adds) sums.push_back(graph.input("sum." + p.name, p.type.with(reduce_type(p))));
  }
  const std::vector<Value> gradients = inline_graph(graph, part.whole, inputs);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const std::string& name = part.whole.outputs()[i].name;
    if (i >= part.parameters.size()) {
      graph.output(name, gradients[i]);
      continue;
    }
    const Value gradient = cast(gradients[i], reduce_type(part.parameters[i]));
    graph.output(name, sums.empty() ? gradient : add(sums[i], gradient));
  }
  return graph;
}

void TrainingBuilder::add_zero() {
  Graph zero("zero");
  Bindings out;
  for (const Parameter& p : trained_) {
    const Type local = local_type(p.type, layouts_.gradient(p), layouts_.mesh());
    zero.output("gradient/" + p.name, constant(zero, local.with(reduce_type(p)), 0));
  }
  add_function("zero", std::move(zero), {}, out);
}

void TrainingBuilder::add_state() {
  for (const Parameter& p : trained_) {
    for (const std::string& name : states_of(p))
      add_value(name, p.type.with(moment_), layouts_.state(p), Residence::state, 1, p);
  }
  add_value("updates", Type(DType::i32, {}), layouts_.whole(), Residence::state, 1);
  add_value("rate", Type(moment_, {}), layouts_.whole(), Residence::input, 1);
  add_value("label_count", Type(moment_, {}), layouts_.whole(), Residence::input, 1);
  add_output("norm", moment_, 1);
  add_output("skipped", DType::i32, 1);
}

std::string TrainingBuilder::reduced_name(const Parameter& p) const {
  const bool same = local_type(p.type, gradient_layout(p), layouts_.mesh()) ==
                    local_type(p.type, layouts_.reduced(p), layouts_.mesh());
  return (same ? "gradient/" : "reduced/") + p.name;
}

void TrainingBuilder::add_reduce() {
  Graph whole("reduce");
  LayoutsByName from, to;
  Bindings out;
  for (const Parameter& p : trained_) {
    if (layouts_.gradient(p) == layouts_.reduced(p)) continue;
    const std::string name = "gradient/" + p.name;
    whole.output(name, whole.input(name, p.type.with(reduce_type(p))));
    from.emplace(name, layouts_.gradient(p));
    to.emplace(name, layouts_.reduced(p));
    if (reduced_name(p) == name) continue;
    out[name] = {reduced_name(p), false};
    add_value(reduced_name(p), p.type.with(reduce_type(p)), layouts_.reduced(p), Residence::gradient, 1, p);
  }
  if (!from.empty()) add_function("reduce", cut(whole, from, to, true).graph, {}, out);
}

void TrainingBuilder::add_update() {
  Graph g = update_graph({strategy_.optimizer, trained_, moment_, [this](const Parameter& p) { return reduce_type(p); },
                          exact() || staged()});
  if (alone()) {
    add_function("update", std::move(g), {}, {});
    return;
  }
  Bindings in;
  LayoutsByName inputs, outputs;
  for (const Parameter& p : trained_) {
    in["gradient/" + p.name] = {reduced_name(p), false};
    inputs.emplace("gradient/" + p.name, layouts_.reduced(p));
    outputs.emplace(p.name, layouts_.parameter(p));
    for (const std::string& name : states_of(p)) {
      inputs.emplace(name, layouts_.state(p));
      outputs.emplace(name, layouts_.state(p));
    }
  }
  for (const char* name : {"updates", "norm", "skipped"}) outputs.emplace(name, layouts_.whole());
  add_function("update", cut(g, inputs, outputs, true).graph, in, {});
}

void TrainingBuilder::add_train_schedule() {
  Schedule schedule{"train", {}};
  if (microbatches() > 1) schedule.actions.push_back({builder_.function_index("zero"), 0, 0, Stream::compute, {}});
  for (int mb = 0; mb < microbatches(); ++mb) {
    schedule.actions.push_back({builder_.function_index("forward"), 0, mb, Stream::compute, {}});
    schedule.actions.push_back({builder_.function_index("backward"), 0, mb, Stream::compute, {}});
  }
  if (builder_.has_function("reduce"))
    schedule.actions.push_back({builder_.function_index("reduce"), 0, 0, Stream::compute, {}});
  schedule.actions.push_back({builder_.function_index("update"), 0, 0, Stream::compute, {}});
  builder_.add_schedule(std::move(schedule));
}

void TrainingBuilder::add_evaluation(const Graph& evaluation, std::span<const Pass> early) {
  Graph typed = run_passes(evaluation, early, {}, &builder_.records());
  if (staged()) return add_stage_evaluation(typed);
  add_parameters(typed);
  add_data_inputs(typed, "evaluate/", exact() ? turns_.turns() : 1);
  add_output("evaluate/loss", scalar_, 1);
  const Bindings in = data_bindings(typed, "evaluate/", exact());
  if (!alone()) typed = cut(typed, {}, {{"loss", layouts_.whole()}}).graph;
  if (exact()) return add_exact_evaluation(std::move(typed), in);
  const int f = add_function("evaluate", std::move(typed), in, {{"loss", {"evaluate/loss", false}}});
  builder_.add_schedule({"evaluate", {{f, 0, 0, Stream::compute, {}}}});
}

void TrainingBuilder::add_snapshot() {
  Graph g("snapshot");
  std::vector<std::string> kept;
  for (const Parameter& p : trained_) {
    kept.push_back(p.name);
    for (const std::string& name : states_of(p)) kept.push_back(name);
  }
  kept.push_back("updates");
  std::vector<Value> inputs;
  for (const std::string& name : kept) inputs.push_back(g.input(name, builder_.value(name).type));
  for (std::size_t i = 0; i < kept.size(); ++i) {
    ProgramValue value = builder_.value(kept[i]);
    value.name = "snapshot/" + kept[i];
    value.residence = Residence::staging;
    g.output(value.name, copy(inputs[i]));
    builder_.add_value(std::move(value));
  }
  const int f = add_function("snapshot", std::move(g), {}, {});
  builder_.add_schedule({"snapshot", {{f, 0, 0, Stream::compute, {}}}});
}
Program training_program(const std::string& name, const Graph& loss, const std::optional<Graph>& evaluation,
                         const Mesh& mesh, const Strategy& strategy, const Target& target,
                         const WorkspaceOf& workspace_of, std::int64_t device) {
  if (strategy.microbatches < 1) fail(error(ErrorKind::invalid, "{} microbatches", strategy.microbatches));
  return TrainingBuilder(name, without_single_axes(mesh), strategy, target, workspace_of, device)
      .build(loss, evaluation);
}

}  // namespace systole
