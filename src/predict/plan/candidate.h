#pragma once
// One way to train a workload on so many devices: how the mesh is cut, what is stored in parts, how often a batch is
// cut, and what is computed again.

#include <memory>
#include <string>
#include <vector>

#include "describe/job/job.h"
#include "predict/perf/step_record.h"

namespace systole {

struct Candidate {
  std::int64_t pipe = 1, data = 1, fsdp = 1, context = 1, expert = 1, model = 1;  // the mesh, the outermost first
  StoredInParts stored = StoredInParts::parameters;                               // along fsdp
  std::int64_t microbatches = 1;
  PipelineSpec::Schedule schedule = PipelineSpec::Schedule::one_f_one_b;
  std::int64_t chunks = 1;                // of a stage
  std::vector<std::int64_t> layers = {};  // of each chunk of the model; empty: as even as can be
  RecomputeSpec::Kind recompute = RecomputeSpec::Kind::none;

  std::int64_t devices() const { return pipe * data * fsdp * context * expert * model; }
  std::int64_t row_parts() const { return data * fsdp * expert; }  // in how many parts a batch's rows are cut
  bool staged() const { return pipe * chunks > 1; }
  auto operator<=>(const Candidate&) const = default;
};
// "fsdp=8 model=2, 4 microbatches, recompute attention"
std::string to_string(const Candidate& candidate);

// Its axes of more than one device, the outermost first.
std::vector<std::pair<std::string, std::int64_t>> mesh_of(const Candidate& candidate);
// The document that asks for it.
Workload workload_of(const Workload& asked, const Candidate& candidate);
PipelineStrategy pipeline_of(const Candidate& candidate);
// Rows of a microbatch on each of the devices that cut rows; the last is filled with empty ones.
std::int64_t local_rows(std::int64_t batch, const Candidate& candidate);

// The Programs of a candidate's stages; equal ones are built once.
struct CandidatePrograms {
  std::vector<std::shared_ptr<const Program>> stages;
  StepRecord step;
};
// `placed`: with places in memory; else for counting alone. Errors: as make_job.
Result<CandidatePrograms> programs_of(const Workload& asked, const Candidate& candidate, const Target& target,
                                      bool placed = true);

}  // namespace systole
