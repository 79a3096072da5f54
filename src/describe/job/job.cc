#include "describe/job/job.h"

#include "describe/graph/partition/joined.h"
#include "describe/models/list.h"

namespace systole {
namespace {

UpdateRule update_rule_of(const OptimizerSpec& spec) {
  UpdateRule rule;
  rule.kind = spec.kind == OptimizerSpec::Kind::adamw ? UpdateRule::Kind::adamw : UpdateRule::Kind::sgd;
  rule.adamw = {spec.beta1, spec.beta2, spec.eps, spec.weight_decay};
  rule.sgd = {spec.momentum, spec.weight_decay};
  rule.clip = spec.clip;
  return rule;
}

RecomputePolicy policy_of(const RecomputeSpec& spec) {
  switch (spec.kind) {
    case RecomputeSpec::Kind::none: return {RecomputePolicy::Kind::none, {}};
    case RecomputeSpec::Kind::attention: return {RecomputePolicy::Kind::attention, {}};
    case RecomputeSpec::Kind::block: return {RecomputePolicy::Kind::block, {}};
    case RecomputeSpec::Kind::named: return {RecomputePolicy::Kind::named, spec.save};
  }
  return {};
}

ShardingStrategy::Stored stored_of(StoredInParts spec) {
  switch (spec) {
    case StoredInParts::nothing: return ShardingStrategy::Stored::nothing;
    case StoredInParts::state: return ShardingStrategy::Stored::state;
    case StoredInParts::gradients: return ShardingStrategy::Stored::gradients;
    case StoredInParts::parameters: break;
  }
  return ShardingStrategy::Stored::parameters;
}

}  // namespace

Strategy strategy_of(const Workload& workload) {
  const TrainSpec& train = workload.train;
  Strategy strategy;
  strategy.microbatches = static_cast<int>(train.microbatches);
  if (train.exact) {  // a shard is a microbatch, unless more are asked for than there are shards
    strategy.logical_shards = static_cast<int>(train.logical_shards);
    strategy.microbatches = static_cast<int>(std::max<std::int64_t>(1, train.microbatches / train.logical_shards));
  }
  strategy.precision = {train.precision.parameter, train.precision.compute, train.precision.accumulate,
                        train.precision.reduce};
  strategy.recompute = policy_of(train.recompute);
  strategy.optimizer = update_rule_of(train.optimizer);
  strategy.probes = workload.probe.all();
  strategy.snapshot = workload.checkpoint.asynchronous;
  strategy.sharding.stored = stored_of(workload.fully_sharded);
  if (workload.context_parallel == ContextParallel::ring) strategy.sharding.context_keys = ContextKeys::ring;
  strategy.pipeline.kind = workload.pipeline.schedule == PipelineSpec::Schedule::gpipe
                               ? PipelineStrategy::Kind::gpipe
                               : PipelineStrategy::Kind::one_f_one_b;
  strategy.pipeline.chunks_per_stage = static_cast<int>(workload.pipeline.chunks);
  strategy.pipeline.layers = workload.pipeline.layers;
  for (const ParameterSharding& rule : workload.sharding)
    strategy.sharding.parameters.push_back({rule.names, rule.dims});
  return strategy;
}

Result<Job> make_job(const Workload& workload, const Strategy& strategy, const Target& target,
                     const WorkspaceOf& workspace_of, std::int64_t rank) {
  try {
    Job job;
    job.workload = workload;
    job.model = make_model(workload.model);
    const TrainSpec& train = workload.train;
    std::vector<Axis> axes;
    for (const auto& [name, size] : workload.mesh) axes.push_back({name, size});
    const Mesh mesh = TRY(Mesh::make(axes));
    if (without_single_axes(mesh).find(kPipelineAxis).ok() && target.whole_steps) {
      return error(ErrorKind::unsupported, "mesh: a pipeline does not run on {}, which takes a step as one program",
                   target.name)
          .hinted("a mesh without the axis pipe; or --device cpu");
    }
    const TrainingLayouts layouts(without_single_axes(mesh), strategy.sharding);
    TRY(layouts.check(job.model->parameters()));
    const std::int64_t parts = layouts.row_parts();
    const auto rows = [&](std::int64_t microbatches) { return (train.batch + microbatches - 1) / microbatches; };
    job.microbatch_rows =
        train.exact ? rows(strategy.microbatches * train.logical_shards) : rows(train.microbatches * parts) * parts;
    const bool held_out = workload.data.kind == DataSpec::Kind::linear
                              ? workload.data.held_out_rows > 0
                              : !workload.data.held_out.files.empty() || workload.data.held_out_fraction > 0;
    if (held_out) job.evaluation_rows = job.microbatch_rows * (train.exact ? train.logical_shards : 1);
    const std::int64_t seq = std::max<std::int64_t>(1, job.model->context());
    std::optional<Graph> evaluation;
    const std::int64_t evaluated = train.exact ? job.microbatch_rows : job.evaluation_rows;
    if (held_out) evaluation = job.model->loss({evaluated, seq}, false);
    job.program = std::make_unique<const Program>(
        training_program(workload.name, job.model->loss({job.microbatch_rows, seq}, true), evaluation, mesh, strategy,
                         target, workspace_of, rank));
    // A check of the gradients needs them between functions.
    if (target.whole_steps && !train.exact && !workload.observe.replay_check)
      job.program = std::make_unique<const Program>(joined(*job.program));
    return job;
  } catch (const Failure& f) { return f.error(); }
}

}  // namespace systole
