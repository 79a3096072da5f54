#include "describe/partition/update.h"

#include "describe/ops/ops.h"

namespace systole {
namespace {

struct Step {
  Value scale, rate, applied, apply;
};

void update_one(const UpdateRule& rule, Graph& g, const Parameter& p, Value parameter, Value gradient,
                const std::vector<Value>& states, const Step& step) {
  const std::vector<std::string> names = state_names(rule, p);
  if (rule.kind == UpdateRule::Kind::adamw) {
    AdamwOptions options = rule.adamw;
    if (!p.decay) options.weight_decay = 0;
    const Adamw next =
        adamw(parameter, gradient, states[0], states[1], step.scale, step.rate, step.applied, step.apply, options);
    g.output(p.name, next.parameter);
    g.output(names[0], next.m);
    g.output(names[1], next.v);
    return;
  }
  SgdOptions options = rule.sgd;
  if (!p.decay) options.weight_decay = 0;
  const Sgd next = sgd(parameter, gradient, states.empty() ? std::nullopt : std::optional(states[0]), step.scale,
                       step.rate, step.apply, options);
  g.output(p.name, next.parameter);
  if (next.m) g.output(names[0], *next.m);
}

}  // namespace

std::vector<std::string> state_names(const UpdateRule& rule, const Parameter& p) {
  if (rule.kind == UpdateRule::Kind::adamw) return {"adamw.m/" + p.name, "adamw.v/" + p.name};
  if (rule.sgd.momentum != 0) return {"sgd.m/" + p.name};
  return {};
}

Graph update_graph(const UpdateGraph& update) {
  Graph g("update");
  std::vector<Value> parameters, gradients;
  std::vector<std::vector<Value>> states;
  for (const Parameter& p : update.trained) {
    parameters.push_back(g.parameter(p));
    gradients.push_back(g.input("gradient/" + p.name, p.type.with(update.gradient_type(p))));
    states.emplace_back();
    for (const std::string& name : state_names(update.rule, p))
      states.back().push_back(g.input(name, p.type.with(update.scalar)));
  }
  const Value updates = g.input("updates", Type(DType::i32, {})), rate = g.input("rate", Type(update.scalar, {})),
              count = g.input("label_count", Type(update.scalar, {}));
  const Value one = constant(g, count.type(), 1);
  const Value size = update.squares_given ? sqrt(g.input("square_sum", Type(update.scalar, {})))
                                          : cast(global_norm(gradients), update.scalar);
  const Value norm = div(size, count);
  const Value apply = is_finite(norm);
  Value scale = div(one, count);
  if (update.rule.clip > 0) scale = mul(scale, min(one, div(constant(g, count.type(), update.rule.clip), norm)));
  const Value zero_i = constant(g, updates.type(), 0), one_i = constant(g, updates.type(), 1);
  const Value applied = add(updates, select(apply, one_i, zero_i));
  for (std::size_t i = 0; i < update.trained.size(); ++i) {
    update_one(update.rule, g, update.trained[i], parameters[i], gradients[i], states[i],
               {scale, rate, applied, apply});
  }
  g.output("updates", applied);
  g.output("norm", norm);
  g.output("skipped", select(apply, zero_i, one_i));
  return g;
}

}  // namespace systole
