#include "execute/train/job.h"

#include <algorithm>

#include "describe/graph/partition/joined.h"
#include "describe/models/list.h"
#include "ground/base/hash.h"

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

Status check_dtypes(const PrecisionSpec& precision, const Target& target) {
  // What the Program would not do is refused rather than left out silently.
  for (const auto& [key, dtype] :
       {std::pair("parameter", precision.parameter), std::pair("accumulate", precision.accumulate)}) {
    if (dtype == DType::f32 || dtype == DType::f64) continue;
    return error(ErrorKind::unsupported, "train.precision.{}: {} is not done yet", key, name_of(dtype))
        .hinted(fmt::format("train.precision.{}: f32; train.precision.compute may be bf16", key));
  }
  for (const auto& [key, dtype] :
       {std::pair("parameter", precision.parameter), std::pair("compute", precision.compute),
        std::pair("accumulate", precision.accumulate), std::pair("reduce", precision.reduce)}) {
    if (std::find(target.dtypes.begin(), target.dtypes.end(), dtype) != target.dtypes.end()) continue;
    return error(ErrorKind::unsupported, "train.precision.{}: {} does not compute in {}", key, target.name,
                 name_of(dtype))
        .hinted("bf16 and f32 run here; --backend reference computes in every type, slowly");
  }
  return {};
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
  strategy.pipeline.kind = workload.pipeline.schedule == PipelineSpec::Schedule::gpipe
                               ? PipelineStrategy::Kind::gpipe
                               : PipelineStrategy::Kind::one_f_one_b;
  strategy.pipeline.chunks_per_stage = static_cast<int>(workload.pipeline.chunks);
  strategy.pipeline.layers = workload.pipeline.layers;
  for (const ParameterSharding& rule : workload.sharding)
    strategy.sharding.parameters.push_back({rule.names, rule.dims});
  return strategy;
}

Result<Job> make_job(const Workload& workload, const Device& device, std::int64_t rank) {
  TRY(check_dtypes(workload.train.precision, device.target()));
  try {
    Job job;
    job.workload = workload;
    job.model = make_model(workload.model);
    const TrainSpec& train = workload.train;
    std::vector<Axis> axes;
    for (const auto& [name, size] : workload.mesh) axes.push_back({name, size});
    const Mesh mesh = TRY(Mesh::make(axes));
    Strategy strategy = strategy_of(workload);
    strategy.snapshot = strategy.snapshot && device.host_sees_memory();  // else: HostState
    if (without_single_axes(mesh).find(kPipelineAxis).ok() && device.target().whole_steps) {
      return error(ErrorKind::unsupported, "mesh: a pipeline does not run on {}, which takes a step as one program",
                   device.target().name)
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
    const WorkspaceOf workspace = [&device](const Graph& g, const GraphNode& n) { return device.workspace(g, n); };
    job.program = std::make_unique<const Program>(
        training_program(workload.name, job.model->loss({job.microbatch_rows, seq}, true), evaluation, mesh, strategy,
                         device.target(), workspace, rank));
    // A check of the gradients needs them between functions.
    if (device.target().whole_steps && !train.exact && !workload.observe.replay_check)
      job.program = std::make_unique<const Program>(joined(*job.program));
    return job;
  } catch (const Failure& f) { return f.error(); }
}

std::string parameters_hash(const Model& model) {
  std::string text;
  for (const Parameter& p : model.parameters())
    text += p.name + " " + to_string(p.type) + (p.trainable ? "\n" : " frozen\n");
  return to_hex(hash128(text));
}

std::string numbers_hash(const Workload& workload) {
  Workload decides = workload;
  decides.name.clear();
  decides.checkpoint = {};
  decides.resources = {};
  decides.observe = {};
  decides.ranks = {};
  decides.probe = {};
  decides.labels.clear();
  decides.mesh.clear();  // any layout computes the same
  decides.sharding.clear();
  decides.fully_sharded = {};
  decides.pipeline = {};
  decides.train.steps = decides.train.tokens = std::nullopt;  // a run may be made longer
  decides.train.time = std::nullopt;
  decides.train.evaluate = {};
  decides.train.evaluate_batches = 0;
  decides.train.exact = false;  // kept with the numerics of a run that is (numerics.h)
  return to_hex(hash128(to_yaml(decides)));
}

}  // namespace systole
