#include "describe/job/job.h"

#include "describe/models/list.h"
#include "describe/partition/fused_step.h"

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

}  // namespace

Strategy strategy_of(const Workload& workload) {
  const TrainSpec& train = workload.train;
  Strategy strategy;
  strategy.microbatches = static_cast<int>(train.microbatches);
  if (train.exact) {  // one microbatch per shard, unless there are more microbatches than shards
    strategy.logical_shards = static_cast<int>(train.logical_shards);
    strategy.microbatches = static_cast<int>(std::max<std::int64_t>(1, train.microbatches / train.logical_shards));
  }
  strategy.precision = {train.precision.parameter, train.precision.compute, train.precision.accumulate,
                        train.precision.reduce};
  strategy.recompute = policy_of(train.recompute);
  strategy.optimizer = update_rule_of(train.optimizer);
  strategy.probes = workload.probe.all();
  strategy.snapshot = workload.checkpoint.asynchronous;
  strategy.sharding.stored = workload.fully_sharded;
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
    const Mesh mesh = TRY(Mesh::of(workload.mesh));
    if (mesh.size_along(kPipelineAxis) > 1 && target.whole_steps) {
      return key_error(ErrorKind::unsupported, "mesh",
                       "a pipeline does not run on {}, which takes a step as one program", target.name)
          .hinted("a mesh without the axis pipe; or --device cpu");
    }
    const TrainingLayouts layouts(without_single_axes(mesh), strategy.sharding);
    TRY(layouts.check(job.model->parameters()));
    const std::int64_t parts = layouts.row_parts();
    const auto rows = [&](std::int64_t microbatches) { return (train.batch + microbatches - 1) / microbatches; };
    job.microbatch_rows =
        train.exact ? rows(strategy.microbatches * train.logical_shards) : rows(train.microbatches * parts) * parts;
    const std::int64_t shards = train.exact ? train.logical_shards : 1;
    job.padded = job.microbatch_rows * strategy.microbatches * shards != train.batch;
    std::optional<Graph> evaluation;
    if (workload.data.has_held_out()) {
      job.evaluation_rows = job.microbatch_rows * shards;
      const bool padded = workload.data.held_out_rows % job.evaluation_rows != 0;
      evaluation = job.model->loss({.rows = job.microbatch_rows, .padded = padded}, false);
    }
    const Graph loss = job.model->loss({.rows = job.microbatch_rows, .padded = job.padded}, true);
    job.program = std::make_unique<const Program>(
        training_program(workload.name, loss, evaluation, mesh, strategy, target, workspace_of, rank));
    // The replay check reads gradients between functions, so the step is not fused.
    if (target.whole_steps && !train.exact && !workload.observe.replay_check)
      job.program = std::make_unique<const Program>(fused_step(*job.program));
    return job;
  } catch (const Failure& f) { return f.error(); }
}

Status check_precision(const PrecisionSpec& precision, const Target& target) {
  // Refuses what the Program would otherwise ignore silently.
  for (const auto& [key, dtype] :
       {std::pair("parameter", precision.parameter), std::pair("accumulate", precision.accumulate)}) {
    if (dtype == DType::f32 || dtype == DType::f64) continue;
    return key_error(ErrorKind::unsupported, fmt::format("train.precision.{}", key), "{} is not done yet",
                     name_of(dtype))
        .hinted(fmt::format("train.precision.{}: f32; train.precision.compute may be bf16", key));
  }
  for (const auto& [key, dtype] :
       {std::pair("parameter", precision.parameter), std::pair("compute", precision.compute),
        std::pair("accumulate", precision.accumulate), std::pair("reduce", precision.reduce)}) {
    if (std::find(target.dtypes.begin(), target.dtypes.end(), dtype) != target.dtypes.end()) continue;
    return key_error(ErrorKind::unsupported, fmt::format("train.precision.{}", key), "{} does not compute in {}",
                     target.name, name_of(dtype))
        .hinted("bf16 and f32 run here; --backend reference computes in every type, slowly");
  }
  return {};
}

}  // namespace systole
