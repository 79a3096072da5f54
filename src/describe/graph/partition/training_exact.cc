// What exact training does in place of the usual: sums by the tree over logical shards (exact.h), joined in "reduce",
// the norm by blocks in "norm", and a schedule that keeps the stack of subtrees.

#include <algorithm>

#include "describe/graph/layer_names.h"
#include "describe/graph/ops/ops.h"
#include "describe/graph/partition/training_builder.h"

namespace systole {

Value TrainingBuilder::summed_loss(Graph& g, const std::string& value, int microbatches, Bindings& in) const {
  std::vector<Value> mine;
  for (int shard = 0; shard < turns_.owned; ++shard) {
    std::optional<Value> loss;
    for (int mb = 0; mb < microbatches; ++mb) {
      const int slot = (turns_.idle + shard) * microbatches + mb;
      const std::string name = fmt::format("{}.{}", value, slot);
      in[name] = {value, false, false, slot};
      const Value one = g.input(name, Type(scalar_, {}));
      loss = loss ? add(*loss, one) : one;
    }
    mine.push_back(*loss);
  }
  return loss_over_shards(g, std::move(mine), scalar_, turns_.shards, workers_);
}

int TrainingBuilder::stored_dim(const Parameter& p) const {
  int stored = -1;
  const Layout reduced = layouts_.reduced(p);
  for (std::size_t a = 0; a < reduced.at.size(); ++a) {
    if (reduced.at[a] < 0) continue;
    if (!layouts_.stores(a)) {
      fail(error(ErrorKind::unsupported, "exact training does not store '{}' in parts along '{}'", p.name,
                 layouts_.mesh().axes()[a].name)
               .hinted(fmt::format("take it out of sharding, or train.exact: false")));
    }
    stored = reduced.at[a];
  }
  return stored;
}

void TrainingBuilder::add_exact_sums() {
  Graph reduce("reduce");
  Bindings in, out;
  const int held = static_cast<int>(subtrees_of({turns_.first, turns_.owned}).size());
  for (const Parameter& p : trained_) {
    if (alone()) break;
    const Type type = p.type.with(reduce_type(p));
    const std::string name = "gradient/" + p.name;
    std::vector<Value> mine;
    for (int slot = 0; slot < held; ++slot) {
      const std::string input = fmt::format("{}.{}", name, slot);
      in[input] = {name, false, false, slot};
      mine.push_back(reduce.input(input, type));
    }
    reduce.output(name, summed_over_shards(reduce, std::move(mine), type, stored_dim(p), turns_.shards, workers_));
    if (reduced_name(p) == name) continue;
    out[name] = {reduced_name(p)};
    add_value(reduced_name(p), type, layouts_.reduced(p), Residence::gradient, 1, p);
  }
  for (const std::string& name : sums_) reduce.output(name, summed_loss(reduce, of_shard(name), microbatches(), in));
  add_function("reduce", std::move(reduce), in, out);
  if (std::any_of(steps_.begin(), steps_.end(),
                  [](const TreeStep& step) { return step.kind == TreeStep::Kind::merge; }))
    add_merge();
  add_norm();
}

void TrainingBuilder::add_exact_evaluation(Graph typed, const Bindings& in) {
  const std::string shard_loss = "evaluate/" + of_shard("loss");
  add_value(shard_loss, Type(scalar_, {}), layouts_.whole(), Residence::partial_sum, turns_.turns());
  Schedule schedule{"evaluate", {}};
  const int f = add_function("evaluate", std::move(typed), in, {{"loss", {shard_loss, true}}});
  for (int turn = 0; turn < turns_.turns(); ++turn) schedule.actions.push_back({f, 0, turn, Stream::compute, {}});
  Graph sum("evaluate_sum");
  Bindings from;
  sum.output("evaluate/loss", summed_loss(sum, shard_loss, 1, from));
  schedule.actions.push_back({add_function("evaluate_sum", std::move(sum), from, {}), 0, 0, Stream::compute, {}});
  builder_.add_schedule(std::move(schedule));
}

void TrainingBuilder::add_merge() {
  Graph g("merge");
  Bindings in, out;
  for (const Parameter& p : trained_) {
    const std::string name = "gradient/" + p.name;
    const Type type = p.type.with(reduce_type(p));
    in["left/" + p.name] = out[name] = {name, false, true, 0};
    in["right/" + p.name] = {name, false, true, 1};
    const Value left = g.input("left/" + p.name, type);
    g.output(name, add(left, g.input("right/" + p.name, type)));
  }
  add_function("merge", std::move(g), in, out);
}

void TrainingBuilder::add_norm() {
  Graph g("norm");
  Bindings in;
  std::vector<Value> gradients;
  std::vector<std::int64_t> layers;
  for (const Parameter& p : trained_) {
    const Layout part = layouts_.reduced(p);
    const std::string name = "gradient/" + p.name;
    in[name] = {reduced_name(p)};
    const Value mine = g.input(name, local_type(p.type, part, layouts_.mesh()).with(reduce_type(p)));
    gradients.push_back(
        build_moves(mine, moves_between(p.type, part, layouts_.whole(), layouts_.mesh()), layouts_.mesh(), nullptr));
    layers.push_back(layer_name(p.name) ? p.type.size(0) : 1);
  }
  g.output("square_sum", cast(squares_by_blocks(gradients, layers), moment_));
  add_value("square_sum", Type(moment_, {}), layouts_.whole(), Residence::partial_sum, 1);
  add_function("norm", std::move(g), in, {});
}

void TrainingBuilder::add_exact_schedule() {
  Schedule schedule{"train", {}};
  const auto act = [&](const char* function, int microbatch, int slot) {
    schedule.actions.push_back({builder_.function_index(function), 0, microbatch, Stream::compute, {}, slot});
  };
  for (int mb = 0; mb < turns_.idle * microbatches(); ++mb) {
    act("forward", mb, 0);
    act("backward", mb, 0);  // what it gives is written over
  }
  for (const TreeStep& step : steps_) {
    if (step.kind == TreeStep::Kind::merge) {
      act("merge", 0, step.slot);
      continue;
    }
    const int first = (turns_.idle + step.shard - turns_.first) * microbatches();
    for (int mb = first; mb < first + microbatches(); ++mb) {
      act("forward", mb, 0);
      act(step.adds || mb > first ? "backward_add" : "backward", mb, step.slot);
    }
  }
  for (const char* function : {"reduce", "norm", "update"}) act(function, 0, 0);
  builder_.add_schedule(std::move(schedule));
}

}  // namespace systole
