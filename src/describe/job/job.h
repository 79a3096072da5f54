#pragma once
// From a Workload to the Program of a device: the model, how it lies on the mesh, and what a step does. `plan` and
// `run`, `prove` and `backtest` all come through here, so that what is planned is what is run.

#include <memory>

#include "describe/graph/partition/training.h"
#include "describe/models/model.h"
#include "describe/spec/workload.h"

namespace systole {

struct Job {
  Workload workload;
  std::unique_ptr<const Model> model;
  std::unique_ptr<const Program> program;
  // batch / microbatches, rounded up; the last is filled with empty rows. Exact: of a logical shard's microbatch.
  std::int64_t microbatch_rows = 0;
  std::int64_t evaluation_rows = 0;  // of a batch of the held-out set; 0: nothing to evaluate
  std::vector<PassRecord> passes;
};

// What a workload asks for, without its mesh.
Strategy strategy_of(const Workload& workload);

// `rank`: the device of the mesh that the Program is for; all have the same one unless training is exact or in stages.
// Errors: invalid (a size that does not work, named), unsupported.
Result<Job> make_job(const Workload& workload, const Strategy& strategy, const Target& target,
                     const WorkspaceOf& workspace_of, std::int64_t rank = 0);

}  // namespace systole
