#include "describe/partition/training_builder.h"

#include <algorithm>

#include "describe/ir/rewrite.h"
#include "describe/ops/ops.h"
#include "describe/partition/chunks.h"
#include "describe/partition/training_policy.h"

namespace systole {
namespace {

bool is_scalar_input(const std::string& name) { return name == "seed" || name == "step"; }

}  // namespace

TrainingBuilder::TrainingBuilder(const std::string& name, const Mesh& mesh, const Strategy& strategy,
                                 const Target& target, const WorkspaceOf& workspace_of)
    : strategy_(strategy),
      layouts_(mesh, strategy.sharding),
      builder_(name, mesh, target, workspace_of),
      scalar_(strategy.precision.compute == DType::f64 ? DType::f64 : DType::f32) {
  builder_.set_overlap(strategy.overlap);
}

std::vector<Pass> TrainingBuilder::typing_passes() const {
  std::vector<Pass> passes{{"precision", [this](const Graph& g) { return apply_precision(g, strategy_.precision); }},
                           {"fold_constants", fold_constants},
                           {"merge_common", merge_common}};
  if (const auto context = mesh().find(kContextAxis); context.ok()) {
    const std::int64_t parts = mesh().axes()[*context].size;
    passes.insert(passes.begin(), {"zigzag", [this, parts](const Graph& g) {
                                     return in_zigzag(g, parts, strategy_.sharding.context_keys);
                                   }});
  }
  return passes;
}

Program TrainingBuilder::build(TrainingPolicy& policy, const Graph& loss, const std::optional<Graph>& evaluation,
                               std::span<const StepShape> shapes) {
  policy_ = &policy;
  const std::vector<Pass> typing = typing_passes();
  const Graph typed = run_passes(loss, typing);
  policy.add_inputs(typed);
  if (trained_.empty()) fail(error(ErrorKind::invalid, "nothing to train: every parameter is frozen"));
  moment_ = trained_.front().type.dtype;
  policy.add_outputs();
  add_gradients();
  add_state();
  policy.add_forward_backward(typed);
  policy.add_update();
  policy.add_schedule();
  for (const StepShape& shape : shapes) policy.add_shape(shape.length, run_passes(shape.loss, typing));
  if (evaluation) policy.add_evaluation(run_passes(*evaluation, typing));
  if (strategy_.snapshot) add_snapshot();
  return strategy_.placed ? builder_.finish() : builder_.unplaced();
}

void TrainingBuilder::add_value(const std::string& name, const Type& whole, const Layout& layout, Residence residence,
                                int slots, std::optional<Parameter> parameter) {
  ProgramValue value{name,        local_type(whole, layout, mesh()), residence, slots, std::move(parameter), 0, 0,
                     std::nullopt};
  if (!alone()) value.cut = CutValue{whole, layout};
  builder_.add_value(std::move(value));
}

void TrainingBuilder::add_parameter(const Parameter& p) {
  add_value(p.name, p.type, layouts_.parameter(p), Residence::parameter, 1, p);
  if (p.trainable) trained_.push_back(p);
}

void TrainingBuilder::add_parameters(const Graph& graph) {
  for (const GraphInput& input : graph.inputs()) {
    if (input.parameter && !builder_.has_value(input.name)) add_parameter(*input.parameter);
  }
}

SpmdGraph TrainingBuilder::cut_by(std::span<const AxisRule> rules, const Graph& whole, LayoutsByName inputs,
                                  LayoutsByName used, const LayoutsByName& outputs, bool fill) const {
  for (const GraphInput& input : whole.inputs()) {
    if (inputs.contains(input.name)) continue;
    inputs.emplace(input.name,
                   input.parameter ? layouts_.parameter(*input.parameter) : policy_->rows(whole.type(input.value)));
  }
  SpmdGraph cut =
      spmd(whole, {mesh(), rules, std::move(inputs), std::move(used), outputs, fill, policy_->carries_partial_sums()});
  CHECK(!has_zigzag(cut.graph), "rows of '{}' are not cut along '{}'", whole.name(), kContextAxis);
  return cut;
}

SpmdGraph TrainingBuilder::cut(const Graph& whole, LayoutsByName inputs, const LayoutsByName& outputs) const {
  LayoutsByName used;
  for (const GraphInput& input : whole.inputs()) {
    if (input.parameter && !inputs.contains(input.name)) used.emplace(input.name, layouts_.read(*input.parameter));
  }
  return cut_by(policy_->rules(), whole, std::move(inputs), std::move(used), outputs, false);
}

SpmdGraph TrainingBuilder::cut_stored(const Graph& whole, LayoutsByName inputs, const LayoutsByName& outputs) const {
  return cut_by(layouts_.rules(), whole, std::move(inputs), {}, outputs, true);
}

int TrainingBuilder::add_function(const std::string& name, Graph graph, Bindings in, Bindings out,
                                  std::vector<std::string> donated) {
  for (const Axis& axis : mesh().axes()) {
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
    const std::string name = is_scalar_input(input.name) ? input.name : prefix + input.name;
    if (input.parameter || is_between(input.name) || builder_.has_value(name)) continue;
    const Type& type = graph.type(input.value);
    if (!divides(type, policy_->rows(type), mesh())) {
      fail(error(ErrorKind::invalid, "'{}' {} does not divide over the devices ({})", input.name, to_string(type),
                 to_string(mesh())));
    }
    add_value(name, type, policy_->rows(type), Residence::input, is_scalar_input(input.name) ? 1 : slots);
  }
}

void TrainingBuilder::add_output(const std::string& name, DType dtype, int slots) {
  add_value(name, Type(dtype, {}), layouts_.whole(), Residence::output, slots);
}

Bindings TrainingBuilder::data_bindings(const Graph& graph, const std::string& prefix, bool by_microbatch) const {
  Bindings bindings;
  for (const GraphInput& input : graph.inputs()) {
    if (input.parameter) continue;
    const bool scalar = is_scalar_input(input.name);
    bindings[input.name] = {scalar ? input.name : prefix + input.name, by_microbatch && !scalar};
  }
  return bindings;
}

void TrainingBuilder::add_backward(Backward part) {
  const std::vector<Pass> sums{{"fold_constants", fold_constants}, {"add_in_repeats", add_in_repeats}};
  Graph backward = run_passes(in_reduce_type(part), sums);
  for (const Parameter& p : part.parameters) {
    part.in["sum." + p.name] = part.out["gradient." + p.name] = {"gradient/" + p.name, false, part.by_slot};
    part.inputs["sum." + p.name] = policy_->gradient(p);
    part.outputs.emplace("gradient." + p.name, policy_->gradient(p));
  }
  if (!alone()) backward = cut(backward, part.inputs, part.outputs).graph;
  add_function(part.name, std::move(backward), part.in, part.out, part.dead);
}

Graph TrainingBuilder::in_reduce_type(const Backward& part) const {
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
    const Type local = local_type(p.type, layouts_.gradient(p), mesh());
    zero.output("gradient/" + p.name, constant(zero, local.with(reduce_type(p)), 0));
  }
  add_function("zero", std::move(zero), {}, out);
}

void TrainingBuilder::add_gradients() {
  for (const Parameter& p : trained_) {
    add_value("gradient/" + p.name, p.type.with(reduce_type(p)), policy_->gradient(p), Residence::gradient,
              policy_->gradient_slots(), p);
  }
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
  const bool same = local_type(p.type, policy_->gradient(p), mesh()) == local_type(p.type, layouts_.reduced(p), mesh());
  return (same ? "gradient/" : "reduced/") + p.name;
}

void TrainingBuilder::add_reduce() {
  if (alone()) return;
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
  if (!from.empty()) add_function("reduce", cut_stored(whole, from, to).graph, {}, out);
}

void TrainingBuilder::add_update(bool squares_given) {
  Graph g = update_graph(
      {strategy_.optimizer, trained_, moment_, [this](const Parameter& p) { return reduce_type(p); }, squares_given});
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
  add_function("update", cut_stored(g, inputs, outputs).graph, in, {});
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

}  // namespace systole
