#include "describe/graph/partition/training.h"

#include <algorithm>

#include "describe/graph/partition/probe.h"
#include "describe/graph/passes/rewrite.h"

namespace systole {
namespace {

bool is_scalar_input(const std::string& name) { return name == "seed" || name == "step"; }

class TrainingBuilder {
 public:
  TrainingBuilder(const std::string& name, const Mesh& mesh, const Strategy& strategy, const Target& target,
                  const WorkspaceOf& workspace_of)
      : strategy_(strategy), builder_(name, mesh, target, workspace_of) {}

  Program build(const Graph& loss, const std::optional<Graph>& evaluation) {
    const std::vector<Pass> early{
        {"precision", [&](const Graph& g) { return apply_precision(g, strategy_.precision); }},
        {"fold_constants", fold_constants},
        {"merge_common", merge_common}};
    const Graph typed = run_passes(loss, early, {}, &builder_.records());
    builder_.add_parameters(typed);
    for (const GraphInput& input : typed.inputs()) {
      if (input.parameter && input.parameter->trainable) trained_.push_back(*input.parameter);
    }
    if (trained_.empty()) fail(error(ErrorKind::invalid, "nothing to train: every parameter is frozen"));
    add_data_inputs(typed, "", microbatches());
    scalar_ = strategy_.precision.compute == DType::f64 ? DType::f64 : DType::f32;
    add_output("loss", scalar_, microbatches());
    for (const Parameter& p : trained_) {
      builder_.add_value({"gradient/" + p.name, p.type.with(reduce_type(p)), Residence::gradient, 1, p, 0, 0});
    }
    add_state();
    add_forward_backward(typed);
    add_update();
    add_train_schedule();
    if (evaluation) add_evaluation(*evaluation, early);
    if (strategy_.snapshot) add_snapshot();
    return builder_.finish();
  }

 private:
  int microbatches() const { return strategy_.microbatches; }

  DType reduce_type(const Parameter& p) const {
    return p.type.dtype == DType::f64 ? DType::f64 : strategy_.precision.reduce;
  }

  void add_data_inputs(const Graph& graph, const std::string& prefix, int slots) {
    for (const GraphInput& input : graph.inputs()) {
      if (input.parameter || builder_.has_value(prefix + input.name)) continue;
      builder_.add_value({prefix + input.name, graph.type(input.value), Residence::input,
                          is_scalar_input(input.name) ? 1 : slots, std::nullopt, 0, 0});
    }
  }

  void add_output(const std::string& name, DType dtype, int slots) {
    builder_.add_value({name, Type(dtype, {}), Residence::output, slots, std::nullopt, 0, 0});
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

    Bindings in = data_bindings(parts.forward, "", true), out{{"loss", {"loss", true}}};
    std::vector<std::string> residuals;
    for (const GraphOutput& output : parts.forward.outputs()) {
      if (output.name == "loss") continue;
      if (output.name.starts_with("probe/")) {
        builder_.add_value({output.name, parts.forward.type(output.value), Residence::output, 1, std::nullopt, 0, 0});
        out[output.name] = {output.name, false};
        continue;
      }
      builder_.add_value({output.name, parts.forward.type(output.value), Residence::residual, 1, std::nullopt, 0, 0});
      out[output.name] = {output.name, true};
      residuals.push_back(output.name);
    }
    Bindings back_in = data_bindings(parts.backward, "", true), back_out;
    for (const std::string& residual : residuals) back_in[residual] = {residual, true};
    const std::vector<Pass> sums{{"fold_constants", fold_constants}, {"add_in_repeats", add_in_repeats}};
    Graph backward = run_passes(in_reduce_type(parts.backward), sums, {}, &builder_.records());
    for (const Parameter& p : trained_) {
      back_in["sum." + p.name] = {"gradient/" + p.name, false};
      back_out["gradient." + p.name] = {"gradient/" + p.name, false};
    }
    builder_.add_function("forward", std::move(parts.forward), in, out);
    builder_.add_function("backward", std::move(backward), back_in, back_out, residuals);
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
      zero.output("gradient/" + p.name, constant(zero, p.type.with(reduce_type(p)), 0));
    }
    builder_.add_function("zero", std::move(zero), {}, out);
  }

  std::vector<std::string> state_names(const Parameter& p) const {
    if (strategy_.optimizer.kind == UpdateRule::Kind::adamw) return {"adamw.m/" + p.name, "adamw.v/" + p.name};
    if (strategy_.optimizer.sgd.momentum != 0) return {"sgd.m/" + p.name};
    return {};
  }

  void add_state() {
    for (const Parameter& p : trained_) {
      for (const std::string& name : state_names(p))
        builder_.add_value({name, p.type.with(scalar_), Residence::state, 1, p, 0, 0});
    }
    builder_.add_value({"updates", Type(DType::i32, {}), Residence::state, 1, std::nullopt, 0, 0});
    builder_.add_value({"rate", Type(scalar_, {}), Residence::input, 1, std::nullopt, 0, 0});
    builder_.add_value({"label_count", Type(scalar_, {}), Residence::input, 1, std::nullopt, 0, 0});
    add_output("norm", scalar_, 1);
    add_output("skipped", DType::i32, 1);
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
    builder_.add_function("update", std::move(g), {}, {});
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
    schedule.actions.push_back({builder_.function_index("update"), 0, 0, Stream::compute, {}});
    builder_.add_schedule(std::move(schedule));
  }

  void add_evaluation(const Graph& evaluation, std::span<const Pass> early) {
    Graph typed = run_passes(evaluation, early, {}, &builder_.records());
    builder_.add_parameters(typed);
    add_data_inputs(typed, "evaluate/", 1);
    add_output("evaluate/loss", scalar_, 1);
    const Bindings in = data_bindings(typed, "evaluate/", false);
    const int f = builder_.add_function("evaluate", std::move(typed), in, {{"loss", {"evaluate/loss", false}}});
    builder_.add_schedule({"evaluate", {{f, 0, 0, Stream::compute, {}}}});
  }

  void add_snapshot() {
    Graph g("snapshot");
    std::vector<std::pair<std::string, Type>> kept;
    for (const Parameter& p : trained_) {
      kept.emplace_back(p.name, p.type);
      for (const std::string& name : state_names(p)) kept.emplace_back(name, p.type.with(scalar_));
    }
    kept.emplace_back("updates", Type(DType::i32, {}));
    std::vector<Value> inputs;
    for (const auto& [name, type] : kept) inputs.push_back(g.input(name, type));
    for (std::size_t i = 0; i < kept.size(); ++i) {
      const std::string name = "snapshot/" + kept[i].first;
      builder_.add_value({name, kept[i].second, Residence::staging, 1, builder_.value(kept[i].first).parameter, 0, 0});
      g.output(name, copy(inputs[i]));
    }
    const int f = builder_.add_function("snapshot", std::move(g), {}, {});
    builder_.add_schedule({"snapshot", {{f, 0, 0, Stream::compute, {}}}});
  }

  const Strategy& strategy_;
  ProgramBuilder builder_;
  std::vector<Parameter> trained_;
  DType scalar_ = DType::f32;  // of losses, norms and moments
};

}  // namespace

Program training_program(const std::string& name, const Graph& loss, const std::optional<Graph>& evaluation,
                         const Mesh& mesh, const Strategy& strategy, const Target& target,
                         const WorkspaceOf& workspace_of) {
  if (!mesh.trivial()) {
    fail(error(ErrorKind::unsupported, "a mesh of {} devices ({}): only one device is partitioned yet",
               mesh.num_devices(), to_string(mesh))
             .hinted("leave out 'mesh'"));
  }
  if (strategy.microbatches < 1) fail(error(ErrorKind::invalid, "{} microbatches", strategy.microbatches));
  return TrainingBuilder(name, mesh, strategy, target, workspace_of).build(loss, evaluation);
}

}  // namespace systole
