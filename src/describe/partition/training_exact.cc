// Exact training: every device computes whole logical shards, one after the other. Sums follow the tree over the shards
// (exact.h): the schedule keeps the stack of subtrees, and "reduce" adds those of all workers. "norm" sums squares by
// blocks.

#include <algorithm>

#include "describe/ir/layer_names.h"
#include "describe/ops/ops.h"
#include "describe/partition/exact.h"
#include "describe/partition/exact_graphs.h"
#include "describe/partition/moves.h"
#include "describe/partition/training_policy.h"
#include "describe/partition/whole_model.h"

namespace systole {
namespace {

std::string of_shard(const std::string& output) { return "shard_" + output; }

class ExactTraining final : public TrainingPolicy {
 public:
  ExactTraining(TrainingBuilder& builder, std::int64_t device);

  // A logical shard is not split over devices. A gradient is whole, also where the device stores only a part of it
  // later: the sum over some of the device's shards.
  Layout rows(const Type&) const override { return builder_.layouts().whole(); }
  Layout gradient(const Parameter&) const override { return builder_.layouts().whole(); }
  std::span<const AxisRule> rules() const override { return {}; }
  bool carries_partial_sums() const override { return false; }
  int gradient_slots() const override { return slots_of(steps_); }

  void add_inputs(const Graph& loss) override;
  void add_outputs() override;
  void add_forward_backward(const Graph& loss) override;
  void add_update() override;
  void add_schedule() override;
  void add_shape(std::int64_t length, const Graph& loss) override;
  void add_evaluation(Graph evaluation) override;

 private:
  int microbatches() const { return logical_shards_.microbatches; }
  int slots() const { return logical_shards_.rounds() * microbatches(); }
  void add_functions(WholeModel& model, const Graph& loss) const;
  // `suffix`: of the forward and backward of its shape.
  void add_step(const std::string& name, const std::string& suffix);
  // The sum of `value` over all shards and their microbatches.
  Value summed_loss(Graph& g, const std::string& value, int microbatches, Bindings& in) const;
  // The dim that the store axis shards; -1: the gradient is stored whole.
  int stored_dim(const Parameter& p) const;
  // "reduce": adds the subtrees of all workers.
  void add_reduce();
  void add_merge();
  // "norm", over whole gradients: sharded ones are gathered, one parameter at a time.
  void add_norm();

  WholeModel model_;
  ExactWorkers workers_;
  LogicalShards logical_shards_;
  std::vector<TreeStep> steps_;
};

ExactTraining::ExactTraining(TrainingBuilder& builder, std::int64_t device) : TrainingPolicy(builder), model_(builder) {
  const Strategy& strategy = builder.strategy();
  // No overlap: devices whose graphs differ would begin collectives in different orders.
  builder.program().set_overlap(false);
  workers_ = exact_workers(builder.layouts(), strategy.logical_shards, device);
  const int count = static_cast<int>(workers_.count);
  const ShardRange mine = shards_of(strategy.logical_shards, count, static_cast<int>(workers_.me));
  logical_shards_ = {strategy.logical_shards, mine.first, mine.count, 0, strategy.microbatches, 0};
  // Where forward gathers parameters, all devices run the same number of rounds.
  const bool gathers = workers_.parts > 1 && strategy.sharding.stored == ShardingStrategy::Stored::parameters;
  if (gathers) logical_shards_.idle = shards_of(strategy.logical_shards, count, 0).count - mine.count;
  steps_ = tree_steps(mine, strategy.microbatches == 1);
}

void ExactTraining::add_inputs(const Graph& loss) {
  model_.add_inputs(loss, slots());
  for (const GraphInput& input : loss.inputs()) {
    const Type& type = loss.type(input.value);
    if (!input.parameter && type.ndim() > 0) logical_shards_.rows = type.size(0);
  }
}

void ExactTraining::add_outputs() {
  const Type scalar(builder_.scalar(), {});
  for (const std::string& name : model_.sums()) builder_.add_output(name, builder_.scalar(), 1);
  for (const std::string& name : model_.sums())
    builder_.add_value(of_shard(name), scalar, builder_.layouts().whole(), Residence::partial_sum, slots());
}

void ExactTraining::add_functions(WholeModel& model, const Graph& loss) const {
  model.add_forward(loss, of_shard);
  model.add_backward("backward", false, true);
  const bool adds = std::any_of(steps_.begin(), steps_.end(), [](const TreeStep& step) { return step.adds; });
  if (adds || microbatches() > 1) model.add_backward("backward_add", true, true);
}

void ExactTraining::add_forward_backward(const Graph& loss) { add_functions(model_, loss); }

// A step of other rows has as many logical shards, each with more rows. Their gradients and losses are summed along the
// same tree, in the same values.
void ExactTraining::add_shape(std::int64_t length, const Graph& loss) {
  const std::string suffix = fmt::format(".{}", length);
  WholeModel shape(builder_, shape_prefix(length), suffix);
  shape.add_inputs(loss, slots());
  add_functions(shape, loss);
  add_step(train_schedule(length), suffix);
}

Value ExactTraining::summed_loss(Graph& g, const std::string& value, int microbatches, Bindings& in) const {
  std::vector<Value> mine;
  for (int shard = 0; shard < logical_shards_.owned; ++shard) {
    std::optional<Value> loss;
    for (int mb = 0; mb < microbatches; ++mb) {
      const int slot = (logical_shards_.idle + shard) * microbatches + mb;
      const std::string name = fmt::format("{}.{}", value, slot);
      in[name] = {value, false, false, slot};
      const Value one = g.input(name, Type(builder_.scalar(), {}));
      loss = loss ? add(*loss, one) : one;
    }
    mine.push_back(*loss);
  }
  return loss_over_shards(g, std::move(mine), builder_.scalar(), logical_shards_.shards, workers_);
}

int ExactTraining::stored_dim(const Parameter& p) const {
  int stored = -1;
  const Layout reduced = builder_.layouts().reduced(p);
  for (std::size_t a = 0; a < reduced.at.size(); ++a) {
    if (reduced.at[a] < 0) continue;
    if (!builder_.layouts().stores(a)) {
      fail(error(ErrorKind::unsupported, "exact training does not shard '{}' along '{}'", p.name,
                 builder_.mesh().axes()[a].name)
               .hinted(fmt::format("take it out of sharding, or train.exact: false")));
    }
    stored = reduced.at[a];
  }
  return stored;
}

void ExactTraining::add_reduce() {
  Graph reduce("reduce");
  Bindings in, out;
  const int held = static_cast<int>(subtrees_of({logical_shards_.first, logical_shards_.owned}).size());
  for (const Parameter& p : builder_.trained()) {
    if (builder_.alone()) break;
    const Type type = p.type.with(builder_.reduce_type(p));
    const std::string name = "gradient/" + p.name;
    std::vector<Value> mine;
    for (int slot = 0; slot < held; ++slot) {
      const std::string input = fmt::format("{}.{}", name, slot);
      in[input] = {name, false, false, slot};
      mine.push_back(reduce.input(input, type));
    }
    reduce.output(name,
                  summed_over_shards(reduce, std::move(mine), type, stored_dim(p), logical_shards_.shards, workers_));
    if (builder_.reduced_name(p) == name) continue;
    out[name] = {builder_.reduced_name(p)};
    builder_.add_value(builder_.reduced_name(p), type, builder_.layouts().reduced(p), Residence::gradient, 1, p);
  }
  for (const std::string& name : model_.sums())
    reduce.output(name, summed_loss(reduce, of_shard(name), microbatches(), in));
  builder_.add_function("reduce", std::move(reduce), in, out);
}

void ExactTraining::add_merge() {
  Graph g("merge");
  Bindings in, out;
  for (const Parameter& p : builder_.trained()) {
    const std::string name = "gradient/" + p.name;
    const Type type = p.type.with(builder_.reduce_type(p));
    in["left/" + p.name] = out[name] = {name, false, true, 0};
    in["right/" + p.name] = {name, false, true, 1};
    const Value left = g.input("left/" + p.name, type);
    g.output(name, add(left, g.input("right/" + p.name, type)));
  }
  builder_.add_function("merge", std::move(g), in, out);
}

void ExactTraining::add_norm() {
  Graph g("norm");
  Bindings in;
  std::vector<Value> gradients;
  std::vector<std::int64_t> layers;
  for (const Parameter& p : builder_.trained()) {
    const Layout part = builder_.layouts().reduced(p);
    const std::string name = "gradient/" + p.name;
    in[name] = {builder_.reduced_name(p)};
    const Value mine = g.input(name, local_type(p.type, part, builder_.mesh()).with(builder_.reduce_type(p)));
    gradients.push_back(build_moves(mine, moves_between(p.type, part, builder_.layouts().whole(), builder_.mesh()),
                                    builder_.mesh(), nullptr));
    layers.push_back(layer_name(p.name) ? p.type.size(0) : 1);
  }
  g.output("square_sum", cast(squares_by_blocks(gradients, layers), builder_.moment()));
  builder_.add_value("square_sum", Type(builder_.moment(), {}), builder_.layouts().whole(), Residence::partial_sum, 1);
  builder_.add_function("norm", std::move(g), in, {});
}

void ExactTraining::add_update() {
  add_reduce();
  const bool merges = std::any_of(steps_.begin(), steps_.end(),
                                  [](const TreeStep& step) { return step.kind == TreeStep::Kind::merge; });
  if (merges) add_merge();
  add_norm();
  builder_.add_update(true);
}

void ExactTraining::add_schedule() {
  add_step("train", "");
  builder_.program().set_shards(logical_shards_);
}

void ExactTraining::add_step(const std::string& name, const std::string& suffix) {
  Schedule schedule{name, {}};
  const std::string forward = "forward" + suffix, backward = "backward" + suffix, adding = "backward_add" + suffix;
  const auto act = [&](const std::string& function, int microbatch, int slot) {
    schedule.actions.push_back({builder_.program().function_index(function), 0, microbatch, Stream::compute, {}, slot});
  };
  for (int mb = 0; mb < logical_shards_.idle * microbatches(); ++mb) {
    act(forward, mb, 0);
    act(backward, mb, 0);  // the result is overwritten
  }
  for (const TreeStep& step : steps_) {
    if (step.kind == TreeStep::Kind::merge) {
      act("merge", 0, step.slot);
      continue;
    }
    const int first = (logical_shards_.idle + step.shard - logical_shards_.first) * microbatches();
    for (int mb = first; mb < first + microbatches(); ++mb) {
      act(forward, mb, 0);
      act(step.adds || mb > first ? adding : backward, mb, step.slot);
    }
  }
  for (const char* function : {"reduce", "norm", "update"}) act(function, 0, 0);
  builder_.program().add_schedule(std::move(schedule));
}

void ExactTraining::add_evaluation(Graph evaluation) {
  WholeModel::Evaluation part = model_.add_evaluation(std::move(evaluation), logical_shards_.rounds(), true);
  const std::string shard_loss = kEvaluationPrefix + of_shard("loss");
  builder_.add_value(shard_loss, Type(builder_.scalar(), {}), builder_.layouts().whole(), Residence::partial_sum,
                     logical_shards_.rounds());
  Schedule schedule{"evaluate", {}};
  const int f = builder_.add_function("evaluate", std::move(part.graph), part.in, {{"loss", {shard_loss, true}}});
  for (int round = 0; round < logical_shards_.rounds(); ++round)
    schedule.actions.push_back({f, 0, round, Stream::compute, {}});
  Graph sum("evaluate_sum");
  Bindings from;
  sum.output("evaluate/loss", summed_loss(sum, shard_loss, 1, from));
  schedule.actions.push_back(
      {builder_.add_function("evaluate_sum", std::move(sum), from, {}), 0, 0, Stream::compute, {}});
  builder_.program().add_schedule(std::move(schedule));
}

}  // namespace

std::unique_ptr<TrainingPolicy> exact_training(TrainingBuilder& builder, std::int64_t device) {
  return std::make_unique<ExactTraining>(builder, device);
}

}  // namespace systole
