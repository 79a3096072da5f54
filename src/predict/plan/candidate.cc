#include "predict/plan/candidate.h"

#include <map>
#include <numeric>
#include <optional>

#include "describe/lengths/bucket_edges.h"
#include "describe/models/list.h"
#include "describe/partition/chunks.h"

namespace systole {
namespace {

const char* name_of(RecomputeSpec::Kind kind) {
  switch (kind) {
    case RecomputeSpec::Kind::none: return "nothing";
    case RecomputeSpec::Kind::attention: return "attention";
    case RecomputeSpec::Kind::block: return "blocks";
    case RecomputeSpec::Kind::named: break;
  }
  return "all but what is named";
}

}  // namespace

std::string to_string(const Candidate& candidate) {
  std::string text;
  for (const auto& [axis, size] : mesh_of(candidate))
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", axis, size);
  if (text.empty()) text = "one device";
  if (candidate.fsdp > 1) text += fmt::format(", {} sharded", name_of(candidate.stored));
  if (candidate.microbatches > 1) text += fmt::format(", {} microbatches", candidate.microbatches);
  if (candidate.staged()) {
    text += candidate.schedule == PipelineSpec::Schedule::gpipe ? ", gpipe" : ", 1f1b";
    if (candidate.chunks > 1) text += fmt::format(" of {} chunks a stage", candidate.chunks);
  }
  if (candidate.recompute != RecomputeSpec::Kind::none)
    text += fmt::format(", recompute {}", name_of(candidate.recompute));
  return text;
}

std::vector<std::pair<std::string, std::int64_t>> mesh_of(const Candidate& candidate) {
  std::vector<std::pair<std::string, std::int64_t>> mesh;
  const std::pair<const char*, std::int64_t> axes[] = {{kPipelineAxis, candidate.pipe}, {"data", candidate.data},
                                                       {"fsdp", candidate.fsdp},        {"context", candidate.context},
                                                       {"expert", candidate.expert},    {"model", candidate.model}};
  for (const auto& [axis, size] : axes)
    if (size > 1) mesh.emplace_back(axis, size);
  return mesh;
}

Workload workload_of(const Workload& asked, const Candidate& candidate) {
  Workload workload = asked;
  workload.mesh = mesh_of(candidate);
  workload.fully_sharded = candidate.stored;
  workload.train.microbatches = candidate.microbatches;
  workload.pipeline = {candidate.schedule, candidate.chunks, candidate.layers};
  if (workload.train.recompute.kind != candidate.recompute) workload.train.recompute = {candidate.recompute, {}};
  return workload;
}

Workload with_length(Workload workload, std::int64_t length) {
  if (length == 0) return workload;
  workload.train.batch = rows_of_bucket(workload.train.batch, workload.model.context(), length);
  workload.data.buckets.reset();
  return workload;
}

PipelineStrategy pipeline_of(const Candidate& candidate) {
  PipelineStrategy pipeline;
  pipeline.stages = static_cast<int>(candidate.pipe);
  pipeline.chunks_per_stage = static_cast<int>(candidate.chunks);
  pipeline.layers = candidate.layers;
  if (candidate.schedule == PipelineSpec::Schedule::gpipe) pipeline.kind = PipelineStrategy::Kind::gpipe;
  return pipeline;
}

std::int64_t local_rows(std::int64_t batch, const Candidate& candidate) {
  const std::int64_t parts = candidate.microbatches * candidate.row_parts();
  return (batch + parts - 1) / parts;
}

Result<CandidatePrograms> programs_of(const Workload& asked, const Candidate& candidate, const Target& target,
                                      bool placed, std::span<const std::int64_t> lengths) {
  Workload workload = workload_of(asked, candidate);
  workload.data.hold_nothing_out();  // evaluation does not change the step
  Strategy strategy = strategy_of(workload);
  strategy.snapshot = false;
  strategy.placed = placed;
  const PipelineStrategy pipeline = pipeline_of(candidate);
  CandidatePrograms programs;
  std::vector<std::int64_t> layers, stacks;
  std::map<std::vector<std::int64_t>, std::shared_ptr<const Program>> known;
  std::vector<const Program*> of_stage;
  try {
    if (candidate.staged()) {
      stacks = layers_of_repeats(make_model(workload.model)->loss({1, 1}, true));
      layers = layers_of_chunks(pipeline, std::accumulate(stacks.begin(), stacks.end(), std::int64_t{0}));
    }
    for (int s = 0; s < pipeline.stages; ++s) {
      std::shared_ptr<const Program>& program =
          known[candidate.staged() ? kind_of_stage(pipeline, layers, stacks, s) : std::vector<std::int64_t>()];
      if (program == nullptr) {
        Job job = TRY(make_job(workload, strategy, target, nullptr, s * candidate.devices() / candidate.pipe, lengths));
        program = std::move(job.program);
      }
      programs.stages.push_back(program);
      of_stage.push_back(program.get());
    }
  } catch (const Failure& f) { return f.error(); }
  programs.step = step_record(of_stage, pipeline, static_cast<int>(candidate.microbatches));
  return programs;
}

}  // namespace systole
