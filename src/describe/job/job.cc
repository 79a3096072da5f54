#include "describe/job/job.h"

#include "describe/lengths/bucket_edges.h"
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

// The lengths of rows, ascending; empty: one, the model's context.
std::vector<std::int64_t> step_lengths(const Workload& workload, std::span<const std::int64_t> of_data) {
  if (!of_data.empty()) return {of_data.begin(), of_data.end()};
  if (!workload.data.buckets) return {};
  std::vector<std::int64_t> lengths = workload.data.buckets->edges;
  const std::int64_t context = workload.model.context();
  if (!lengths.empty() && lengths.back() < context) lengths.push_back(context);
  return lengths;
}

// A mixture's groups of tokens lie within rows of every length.
Status check_groups(const Workload& workload, std::span<const std::int64_t> lengths) {
  const auto* decoder = std::get_if<DecoderSpec>(&workload.model.family);
  const std::int64_t group = decoder == nullptr || decoder->moe.experts == 0 ? 0 : decoder->moe.group;
  std::optional<std::int64_t> cut;
  std::vector<std::int64_t> fit;
  for (const std::int64_t length : lengths) {
    const std::int64_t filled = length <= group || group == 0 ? length : (length + group - 1) / group * group;
    if (filled != length && !cut) cut = length;
    if (fit.empty() || fit.back() != filled) fit.push_back(filled);
  }
  if (!cut) return {};
  return key_error(ErrorKind::invalid, "data.buckets", "groups of {} tokens (model.moe.group) do not divide rows of {}",
                   group, *cut)
      .hinted(fmt::format("data.buckets: [{}], or without model.moe.group a group is a row", fmt::join(fit, ", ")));
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

Status check_shapes(const Workload& workload) {
  if (!workload.data.buckets) return {};
  const auto refused = [](const std::string& what, const char* hint) {
    return key_error(ErrorKind::unsupported, "data.buckets", "{} has rows of one length yet", what)
        .hinted(fmt::format("{}, or take data.buckets out", hint));
  };
  const Mesh mesh = TRY(Mesh::of(workload.mesh));
  if (mesh.size_along(kContextAxis) > 1) return refused("a mesh with the axis context", "a mesh without it");
  if (!workload.probe.all().empty()) return refused("a step with probes", "run it without probes");
  return check_groups(workload, step_lengths(workload, {}));
}

Result<Job> make_job(const Workload& workload, const Strategy& strategy, const Target& target,
                     const WorkspaceOf& workspace_of, std::int64_t rank, std::span<const std::int64_t> lengths) {
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
    TRY(check_shapes(workload));
    const TrainingLayouts layouts(without_single_axes(mesh), strategy.sharding);
    TRY(layouts.check(job.model->parameters()));
    const std::int64_t parts = layouts.row_parts();
    // Rows of a microbatch, of a step with so many rows.
    const auto microbatch_of = [&](std::int64_t rows) {
      const std::int64_t cut = train.exact ? strategy.microbatches * train.logical_shards : train.microbatches * parts;
      return (rows + cut - 1) / cut * (train.exact ? 1 : parts);
    };
    const std::int64_t shards = train.exact ? train.logical_shards : 1;
    std::optional<Graph> evaluation;
    if (workload.data.has_held_out()) {
      const std::int64_t rows = microbatch_of(train.batch);
      job.evaluation_rows = rows * shards;
      const bool padded = workload.data.held_out_rows % job.evaluation_rows != 0;
      evaluation = job.model->loss({.rows = rows, .padded = padded}, false);
    }
    const std::int64_t context = job.model->context();
    TRY(check_groups(workload, step_lengths(workload, lengths)));
    for (const std::int64_t length : step_lengths(workload, lengths)) {
      const bool buckets = workload.data.buckets.has_value();
      const std::int64_t rows = buckets ? rows_of_bucket(train.batch, context, length) : train.batch;
      job.shapes.push_back({length, rows, microbatch_of(rows), train_schedule(length), shape_prefix(length)});
    }
    StepRows longest{0, train.batch, microbatch_of(train.batch), "train", ""};
    if (!job.shapes.empty()) {
      job.shapes.back().schedule = longest.schedule;
      job.shapes.back().prefix = longest.prefix;
      longest = job.shapes.back();
    }
    job.microbatch_rows = longest.microbatch_rows;
    job.padded = job.microbatch_rows * strategy.microbatches * shards != longest.rows;
    const auto loss_of = [&](const StepRows& shape) {
      return job.model->loss({.rows = shape.microbatch_rows, .sequence_length = shape.length, .padded = job.padded},
                             true);
    };
    std::vector<StepShape> shorter;
    for (const StepRows& shape : job.shapes)
      if (shape.schedule != longest.schedule) shorter.push_back({shape.length, loss_of(shape)});
    job.program = std::make_unique<const Program>(training_program(workload.name, loss_of(longest), evaluation, mesh,
                                                                   strategy, target, workspace_of, rank, shorter));
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
