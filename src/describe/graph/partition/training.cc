#include "describe/graph/partition/training.h"

#include <algorithm>

#include "describe/graph/partition/probe.h"
#include "describe/graph/partition/spmd.h"
#include "describe/graph/passes/rewrite.h"

namespace systole {
namespace {

bool is_scalar_input(const std::string& name) { return name == "seed" || name == "step"; }

using LayoutsByName = std::map<std::string, Layout>;

class TrainingBuilder {
 public:
  TrainingBuilder(const std::string& name, const Mesh& mesh, const Strategy& strategy, const Target& target,
                  const WorkspaceOf& workspace_of)
      : strategy_(strategy), layouts_(mesh, strategy.sharding), builder_(name, mesh, target, workspace_of) {
    builder_.set_overlap(strategy.overlap);
  }

  Program build(const Graph& loss, const std::optional<Graph>& evaluation) {
    const std::vector<Pass> early{
        {"precision", [&](const Graph& g) { return apply_precision(g, strategy_.precision); }},
        {"fold_constants", fold_constants},
        {"merge_common", merge_common}};
    const Graph typed = run_passes(loss, early, {}, &builder_.records());
    add_parameters(typed);
    if (trained_.empty()) fail(error(ErrorKind::invalid, "nothing to train: every parameter is frozen"));
    add_data_inputs(typed, "", microbatches());
    scalar_ = strategy_.precision.compute == DType::f64 ? DType::f64 : DType::f32;
    add_output("loss", scalar_, microbatches());
    for (const Parameter& p : trained_)
      add_value("gradient/" + p.name, p.type.with(reduce_type(p)), layouts_.gradient(p), Residence::gradient, 1, p);
    add_state();
    add_forward_backward(typed);
    if (!alone()) add_reduce();
    add_update();
    add_train_schedule();
    if (evaluation) add_evaluation(*evaluation, early);
    if (strategy_.snapshot) add_snapshot();
    return builder_.finish();
  }

 private:
  int microbatches() const { return strategy_.microbatches; }
  bool alone() const { return layouts_.mesh().trivial(); }

  // A value of which a device has the part that the layout says.
  void add_value(const std::string& name, const Type& whole, const Layout& layout, Residence residence, int slots,
                 std::optional<Parameter> parameter = std::nullopt) {
    ProgramValue value{
        name, local_type(whole, layout, layouts_.mesh()), residence, slots, std::move(parameter), 0, 0, std::nullopt};
    if (!alone()) value.cut = CutValue{whole, layout};
    builder_.add_value(std::move(value));
  }

  void add_parameters(const Graph& graph) {
    for (const GraphInput& input : graph.inputs()) {
      if (!input.parameter || builder_.has_value(input.name)) continue;
      const Parameter& p = *input.parameter;
      add_value(p.name, p.type, layouts_.parameter(p), Residence::parameter, 1, p);
      if (p.trainable) trained_.push_back(p);
    }
  }

  // The graph of one device. Inputs that are not named are parameters, rows or scalars.
  SpmdGraph cut(const Graph& whole, LayoutsByName inputs, const LayoutsByName& outputs, bool fill = false) const {
    LayoutsByName used;
    for (const GraphInput& input : whole.inputs()) {
      if (inputs.contains(input.name)) continue;
      if (input.parameter && !fill) used.emplace(input.name, layouts_.read(*input.parameter));
      inputs.emplace(input.name,
                     input.parameter ? layouts_.parameter(*input.parameter) : layouts_.rows(whole.type(input.value)));
    }
    return spmd(whole, {layouts_.mesh(), layouts_.rules(), std::move(inputs), std::move(used), outputs, fill});
  }

  int add_function(const std::string& name, Graph graph, Bindings in, Bindings out,
                   std::vector<std::string> donated = {}) {
    for (const Axis& axis : layouts_.mesh().axes()) {
      const std::string input = coordinate_name(axis.name), value = "coordinate/" + axis.name;
      if (!graph.find_input(input)) continue;
      in[input] = {value, false};
      if (!builder_.has_value(value)) add_value(value, Type(DType::i64, {}), layouts_.whole(), Residence::input, 1);
    }
    return builder_.add_function(name, std::move(graph), in, out, std::move(donated));
  }

  DType reduce_type(const Parameter& p) const {
    return p.type.dtype == DType::f64 ? DType::f64 : strategy_.precision.reduce;
  }

  void add_data_inputs(const Graph& graph, const std::string& prefix, int slots) {
    for (const GraphInput& input : graph.inputs()) {
      if (input.parameter || builder_.has_value(prefix + input.name)) continue;
      const Type& type = graph.type(input.value);
      if (!divides(type, layouts_.rows(type), layouts_.mesh())) {
        fail(error(ErrorKind::invalid, "{} rows of '{}' do not divide over {} devices ({})", type.size(0), input.name,
                   layouts_.row_parts(), to_string(layouts_.mesh())));
      }
      add_value(prefix + input.name, type, layouts_.rows(type), Residence::input,
                is_scalar_input(input.name) ? 1 : slots);
    }
  }

  void add_output(const std::string& name, DType dtype, int slots) {
    add_value(name, Type(dtype, {}), layouts_.whole(), Residence::output, slots);
  }

  Bindings data_bindings(const Graph& graph, const std::string& prefix, bool by_microbatch) const {
    Bindings bindings;
    for (const GraphInput& input : graph.inputs()) {
      if (!input.parameter) bindings[input.name] = {prefix + input.name, by_microbatch && !is_scalar_input(input.name)};
    }
    return bindings;
  }

  void add_forward_backward(const Graph& typed) {
    const std::vector<Pass> late{{"merge_common", merge_common}, {"drop_dead", drop_dead}};
    Differentiated parts = differentiate(typed, "loss", strategy_.recompute);
    parts.forward = run_passes(std::move(parts.forward), late, {}, &builder_.records());
    parts.backward = run_passes(std::move(parts.backward), late, {}, &builder_.records());
    parts.forward = with_probes(parts.forward, probes_matching(parts.forward, strategy_.probes, also_probed()).value());

    LayoutsByName wanted{{"loss", layouts_.whole()}}, residual_layouts;
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
    Bindings in = data_bindings(parts.forward, "", true), out{{"loss", {"loss", true}}};
    std::vector<std::string> residuals;
    for (std::size_t o = 0; o < parts.forward.outputs().size(); ++o) {
      const GraphOutput& output = parts.forward.outputs()[o];
      if (output.name == "loss") continue;
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
    Bindings back_in = data_bindings(parts.backward, "", true), back_out;
    for (const std::string& residual : residuals) back_in[residual] = {residual, true};
    const std::vector<Pass> sums{{"fold_constants", fold_constants}, {"add_in_repeats", add_in_repeats}};
    Graph backward = run_passes(in_reduce_type(parts.backward), sums, {}, &builder_.records());
    LayoutsByName gradients;
    for (const Parameter& p : trained_) {
      back_in["sum." + p.name] = {"gradient/" + p.name, false};
      back_out["gradient." + p.name] = {"gradient/" + p.name, false};
      residual_layouts["sum." + p.name] = layouts_.gradient(p);
      gradients.emplace("gradient." + p.name, layouts_.gradient(p));
    }
    if (!alone()) backward = cut(backward, residual_layouts, gradients).graph;
    add_function("forward", std::move(parts.forward), in, out);
    add_function("backward", std::move(backward), back_in, back_out, residuals);
    if (microbatches() > 1) add_zero();
  }

  // What a probe may name besides values of the graph: these are there anyway.
  std::vector<std::string> also_probed() const {
    std::vector<std::string> names{"parameters", "gradients"};
    for (const Parameter& p : trained_) {
      const std::size_t layer = p.name.find("{layer}");
      for (std::int64_t i = 0; i < (layer == p.name.npos ? 1 : p.type.size(0)); ++i) {
        std::string name = p.name;
        if (layer != name.npos) name.replace(layer, 7, std::to_string(i));
        names.push_back("gradient/" + name);
        names.push_back(std::move(name));
      }
    }
    return names;
  }

  // The backward graph with its gradients in the reduce type, added to what the microbatches before gave.
  Graph in_reduce_type(const Graph& backward) {
    Graph graph(backward.name());
    const std::vector<Value> inputs = copy_inputs(graph, backward);
    std::vector<Value> sums;
    for (std::size_t i = 0; i < trained_.size() && microbatches() > 1; ++i) {
      const Parameter& p = trained_[i];
      sums.push_back(graph.input("sum." + p.name, p.type.with(reduce_type(p))));
    }
    const std::vector<Value> gradients = inline_graph(graph, backward, inputs);
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const Value gradient = cast(gradients[i], reduce_type(trained_[i]));
      graph.output(backward.outputs()[i].name, sums.empty() ? gradient : add(sums[i], gradient));
    }
    return graph;
  }

  void add_zero() {
    Graph zero("zero");
    Bindings out;
    for (const Parameter& p : trained_) {
      const Type local = local_type(p.type, layouts_.gradient(p), layouts_.mesh());
      zero.output("gradient/" + p.name, constant(zero, local.with(reduce_type(p)), 0));
    }
    add_function("zero", std::move(zero), {}, out);
  }

  std::vector<std::string> state_names(const Parameter& p) const {
    if (strategy_.optimizer.kind == UpdateRule::Kind::adamw) return {"adamw.m/" + p.name, "adamw.v/" + p.name};
    if (strategy_.optimizer.sgd.momentum != 0) return {"sgd.m/" + p.name};
    return {};
  }

  void add_state() {
    for (const Parameter& p : trained_) {
      for (const std::string& name : state_names(p))
        add_value(name, p.type.with(scalar_), layouts_.state(p), Residence::state, 1, p);
    }
    add_value("updates", Type(DType::i32, {}), layouts_.whole(), Residence::state, 1);
    add_value("rate", Type(scalar_, {}), layouts_.whole(), Residence::input, 1);
    add_value("label_count", Type(scalar_, {}), layouts_.whole(), Residence::input, 1);
    add_output("norm", scalar_, 1);
    add_output("skipped", DType::i32, 1);
  }

  // Where the sum of the devices' gradients lies: in the gradient's own place unless its parts are smaller.
  std::string reduced_name(const Parameter& p) const {
    const bool same = local_type(p.type, layouts_.gradient(p), layouts_.mesh()) ==
                      local_type(p.type, layouts_.reduced(p), layouts_.mesh());
    return (same ? "gradient/" : "reduced/") + p.name;
  }

  // The devices' terms of each gradient added up, each device keeping the part that it updates.
  void add_reduce() {
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

  // norm = |sum of gradients| / count; scale = min(1, clip / norm) / count; apply = norm is finite.
  void add_update() {
    Graph g("update");
    std::vector<Value> parameters, gradients;
    std::vector<std::vector<Value>> states;
    for (const Parameter& p : trained_) {
      parameters.push_back(g.parameter(p));
      gradients.push_back(g.input("gradient/" + p.name, p.type.with(reduce_type(p))));
      states.emplace_back();
      for (const std::string& name : state_names(p)) states.back().push_back(g.input(name, p.type.with(scalar_)));
    }
    const Value updates = g.input("updates", Type(DType::i32, {})), rate = g.input("rate", Type(scalar_, {})),
                count = g.input("label_count", Type(scalar_, {}));
    const Value one = constant(g, count.type(), 1), norm = div(global_norm(gradients), count);
    const Value apply = is_finite(norm);
    Value scale = div(one, count);
    if (strategy_.optimizer.clip > 0)
      scale = mul(scale, min(one, div(constant(g, count.type(), strategy_.optimizer.clip), norm)));
    const Value zero_i = constant(g, updates.type(), 0), one_i = constant(g, updates.type(), 1);
    const Value applied = add(updates, select(apply, one_i, zero_i));
    for (std::size_t i = 0; i < trained_.size(); ++i)
      update_one(g, trained_[i], parameters[i], gradients[i], states[i], scale, rate, applied, apply);
    g.output("updates", applied);
    g.output("norm", norm);
    g.output("skipped", select(apply, zero_i, one_i));
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
      for (const std::string& name : state_names(p)) {
        inputs.emplace(name, layouts_.state(p));
        outputs.emplace(name, layouts_.state(p));
      }
    }
    for (const char* name : {"updates", "norm", "skipped"}) outputs.emplace(name, layouts_.whole());
    add_function("update", cut(g, inputs, outputs, true).graph, in, {});
  }

  void update_one(Graph& g, const Parameter& p, Value parameter, Value gradient, const std::vector<Value>& states,
                  Value scale, Value rate, Value applied, Value apply) {
    const std::vector<std::string> names = state_names(p);
    if (strategy_.optimizer.kind == UpdateRule::Kind::adamw) {
      AdamwOptions options = strategy_.optimizer.adamw;
      if (!p.decay) options.weight_decay = 0;
      const Adamw next = adamw(parameter, gradient, states[0], states[1], scale, rate, applied, apply, options);
      g.output(p.name, next.parameter);
      g.output(names[0], next.m);
      g.output(names[1], next.v);
      return;
    }
    SgdOptions options = strategy_.optimizer.sgd;
    if (!p.decay) options.weight_decay = 0;
    const Sgd next =
        sgd(parameter, gradient, states.empty() ? std::nullopt : std::optional(states[0]), scale, rate, apply, options);
    g.output(p.name, next.parameter);
    if (next.m) g.output(names[0], *next.m);
  }

  void add_train_schedule() {
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

  void add_evaluation(const Graph& evaluation, std::span<const Pass> early) {
    Graph typed = run_passes(evaluation, early, {}, &builder_.records());
    add_parameters(typed);
    add_data_inputs(typed, "evaluate/", 1);
    add_output("evaluate/loss", scalar_, 1);
    const Bindings in = data_bindings(typed, "evaluate/", false);
    if (!alone()) typed = cut(typed, {}, {{"loss", layouts_.whole()}}).graph;
    const int f = add_function("evaluate", std::move(typed), in, {{"loss", {"evaluate/loss", false}}});
    builder_.add_schedule({"evaluate", {{f, 0, 0, Stream::compute, {}}}});
  }

  void add_snapshot() {
    Graph g("snapshot");
    std::vector<std::string> kept;
    for (const Parameter& p : trained_) {
      kept.push_back(p.name);
      for (const std::string& name : state_names(p)) kept.push_back(name);
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

  const Strategy& strategy_;
  TrainingLayouts layouts_;
  ProgramBuilder builder_;
  std::vector<Parameter> trained_;
  DType scalar_ = DType::f32;  // of losses, norms and moments
};

}  // namespace

Program training_program(const std::string& name, const Graph& loss, const std::optional<Graph>& evaluation,
                         const Mesh& mesh, const Strategy& strategy, const Target& target,
                         const WorkspaceOf& workspace_of) {
  if (strategy.microbatches < 1) fail(error(ErrorKind::invalid, "{} microbatches", strategy.microbatches));
  return TrainingBuilder(name, without_single_axes(mesh), strategy, target, workspace_of).build(loss, evaluation);
}

}  // namespace systole
