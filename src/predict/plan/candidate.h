#pragma once
// One way to train a workload on a number of devices: the mesh, the ZeRO stage, the microbatches and the recomputation.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "describe/job/job.h"
#include "predict/perf/step_record.h"

namespace systole {

struct Candidate {
  std::int64_t pipe = 1, data = 1, fsdp = 1, context = 1, expert = 1, model = 1;  // the mesh, outermost axis first
  ZeroStage stored = ZeroStage::parameters;                                       // ZeRO along fsdp
  std::int64_t microbatches = 1;
  PipelineSpec::Schedule schedule = PipelineSpec::Schedule::one_f_one_b;
  std::int64_t chunks = 1;                // per stage
  std::vector<std::int64_t> layers = {};  // of each chunk of the model; empty: as even as possible
  RecomputeSpec::Kind recompute = RecomputeSpec::Kind::none;

  std::int64_t devices() const { return pipe * data * fsdp * context * expert * model; }
  std::int64_t row_parts() const { return data * fsdp * expert; }  // shards of a batch's rows
  bool staged() const { return pipe * chunks > 1; }
  auto operator<=>(const Candidate&) const = default;
};
// "fsdp=8 model=2, 4 microbatches, recompute attention"
std::string to_string(const Candidate& candidate);

// Its axes of more than one device, the outermost first.
std::vector<std::pair<std::string, std::int64_t>> mesh_of(const Candidate& candidate);
// The workload that asks for this candidate.
Workload workload_of(const Workload& asked, const Candidate& candidate);
// The workload with rows of this length alone, as many of them a step as data.buckets gives them; 0: as it is.
Workload with_length(Workload workload, std::int64_t length);
PipelineStrategy pipeline_of(const Candidate& candidate);
// Rows of a microbatch on each device along the axes that shard rows; the last device is padded with empty rows.
std::int64_t local_rows(std::int64_t batch, const Candidate& candidate);

// The Programs of a candidate's stages; equal ones are built once.
struct CandidatePrograms {
  std::vector<std::shared_ptr<const Program>> stages;
  StepRecord step;
};
// `placed`: assigns memory offsets; otherwise the Programs serve for counting only. `lengths`: of rows, as make_job; the
// step that is recorded is that of the longest. Errors: as make_job.
Result<CandidatePrograms> programs_of(const Workload& asked, const Candidate& candidate, const Target& target,
                                      bool placed = true, std::span<const std::int64_t> lengths = {});

}  // namespace systole
