#pragma once
// The training step of a workload as a module for a slice, with predictions for it.

#include <optional>
#include <string>

#include "describe/job/job.h"
#include "describe/program/program.h"
#include "describe/stablehlo/module.h"
#include "ground/base/document.h"
#include "ground/catalog/catalog.h"
#include "predict/perf/compiled_peak.h"
#include "predict/perf/op_time.h"
#include "predict/prove/proof.h"
#include "predict/prove/slice.h"

namespace systole::prove {

struct JobOnSlice {
  std::string name;  // of the workload
  std::string mesh;  // "data=2 model=2"; "one device"
  Program program;   // the training step is its function kStepFunction
  stablehlo::Module module;
  CompiledPeak peak;  // predicted memory needs under the compiler
  // Predicted compute time under the compiler; nothing for a chip whose rates perf does not have.
  std::optional<TimeByClass> compute;
};

// The workload's job for devices of the slice. Errors: as make_job.
Result<Job> job_for(const Workload& workload, const Slice& slice);

// The job's training step, lowered. `name`: of the workload. Errors: unsupported: an op or type that cannot be lowered,
// several microbatches.
Result<JobOnSlice> lowered_on(const std::string& name, const Program& program, const Slice& slice,
                              const Catalog& catalog);

// Both steps. REQUIRES: the workload's mesh has no more devices than the slice. Errors: as above.
Result<JobOnSlice> job_on(const Workload& workload, const Slice& slice, const Catalog& catalog);

// What the Program plans and perf predicts, compared with the compiler's result.
Node beside_node(const JobOnSlice& job, const Proof& proof);

// The prediction alone, against the nominal memory of a device.
Node predicted_node(const JobOnSlice& job, const Slice& slice);

}  // namespace systole::prove
