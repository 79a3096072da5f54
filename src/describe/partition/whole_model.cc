#include "describe/partition/whole_model.h"

#include "describe/ir/layer_names.h"
#include "describe/partition/probe.h"
#include "describe/passes/passes.h"

namespace systole {

void WholeModel::add_inputs(const Graph& loss, int slots) {
  builder_.add_parameters(loss);
  builder_.add_data_inputs(loss, prefix_, slots);
  sums_ = {"loss"};
  for (const GraphOutput& output : loss.outputs()) {
    if (output.name != "loss") sums_.push_back(output.name);
  }
}

void WholeModel::add_forward(const Graph& loss, const std::function<std::string(const std::string&)>& value_of) {
  const std::vector<Pass> late{{"merge_common", merge_common}, {"drop_dead", drop_dead}};
  const Strategy& strategy = builder_.strategy();
  const Layout whole = builder_.layouts().whole();
  Differentiated parts = differentiate(loss, "loss", strategy.recompute);
  Graph forward = run_passes(std::move(parts.forward), late);
  backward_ = run_passes(std::move(parts.backward), late);
  if (!strategy.probes.empty())
    forward = with_probes(forward, probes_matching(forward, strategy.probes, also_probed()).value());

  LayoutsByName wanted;
  for (const std::string& name : sums_) wanted.emplace(name, whole);
  for (const GraphOutput& output : forward.outputs()) {
    if (output.name.starts_with("probe/")) wanted.emplace(output.name, whole);
  }
  std::vector<Type> whole_types;  // of the outputs
  for (const GraphOutput& output : forward.outputs()) whole_types.push_back(forward.type(output.value));
  if (!builder_.alone()) {
    SpmdGraph cut = builder_.cut(forward, {}, wanted);
    forward = std::move(cut.graph);
    residual_layouts_ = std::move(cut.outputs);
  }
  Bindings in = builder_.data_bindings(forward, prefix_, true), out;
  for (const std::string& name : sums_) out[name] = {value_of(name), true};
  for (std::size_t o = 0; o < forward.outputs().size(); ++o) {
    const GraphOutput& output = forward.outputs()[o];
    if (out.contains(output.name)) continue;
    if (output.name.starts_with("probe/")) {
      builder_.add_value(output.name, whole_types[o], whole, Residence::output, 1);
      out[output.name] = {output.name, false};
      continue;
    }
    const Layout& layout = builder_.alone() ? whole : residual_layouts_.at(output.name);
    builder_.add_value(prefix_ + output.name, whole_types[o], layout, Residence::residual, 1);
    out[output.name] = {prefix_ + output.name, true};
    residuals_.push_back(output.name);
  }
  backward_in_ = builder_.data_bindings(backward_, prefix_, true);
  for (const std::string& residual : residuals_) backward_in_[residual] = {prefix_ + residual, true};
  builder_.add_function("forward" + suffix_, std::move(forward), in, out);
}

void WholeModel::add_backward(const std::string& name, bool adds, bool by_slot) {
  builder_.add_backward({name + suffix_,
                         backward_,
                         adds,
                         by_slot,
                         builder_.trained(),
                         backward_in_,
                         {},
                         residuals_,
                         residual_layouts_,
                         {}});
}

WholeModel::Evaluation WholeModel::add_evaluation(Graph evaluation, int slots, bool by_microbatch) {
  builder_.add_parameters(evaluation);
  builder_.add_data_inputs(evaluation, kEvaluationPrefix, slots);
  builder_.add_output("evaluate/loss", builder_.scalar(), 1);
  Bindings in = builder_.data_bindings(evaluation, kEvaluationPrefix, by_microbatch);
  if (!builder_.alone()) evaluation = builder_.cut(evaluation, {}, {{"loss", builder_.layouts().whole()}}).graph;
  return {std::move(evaluation), std::move(in)};
}

// Other names that a probe may use: parameters and gradients, which are values of the Program anyway.
std::vector<std::string> WholeModel::also_probed() const {
  std::vector<std::string> names{"parameters", "gradients"};
  for (const Parameter& p : builder_.trained()) {
    const std::optional<LayerName> layers = layer_name(p.name);
    for (std::int64_t i = 0; i < (layers ? p.type.size(0) : 1); ++i) {
      std::string name = layers ? layers->of(i) : p.name;
      names.push_back("gradient/" + name);
      names.push_back(std::move(name));
    }
  }
  return names;
}

}  // namespace systole
