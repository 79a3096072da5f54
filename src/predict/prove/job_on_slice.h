#pragma once
// The training step of a workload as a module for a slice, with predictions for it; with data.buckets that of each
// length.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "describe/job/job.h"
#include "describe/partition/fused_step.h"
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
  Program program;
  std::string step = kStepFunction;   // the function of `program` that is the training step
  std::int64_t length = 0, rows = 0;  // with data.buckets: of the step's rows, and their number; else 0
  stablehlo::Module module;
  CompiledPeak peak;  // predicted memory needs under the compiler
  // Predicted compute time under the compiler; nothing for a chip whose rates perf does not have.
  std::optional<TimeByClass> compute;
  const Function& function() const { return program.function_named(step); }
};

// The workload's job for devices of the slice. `lengths`: as make_job. Errors: as make_job.
Result<Job> job_for(const Workload& workload, const Slice& slice, std::span<const std::int64_t> lengths = {});

// The job's training steps, lowered: one, or with data.buckets one of each length, ascending. Errors: unsupported: an
// op or type that cannot be lowered, several microbatches.
Result<std::vector<JobOnSlice>> lowered_on(const Job& job, const Slice& slice, const Catalog& catalog);

// The step of the longest rows, from the workload. REQUIRES: its mesh has no more devices than the slice. Errors: as
// above.
Result<JobOnSlice> job_on(const Workload& workload, const Slice& slice, const Catalog& catalog,
                          std::span<const std::int64_t> lengths = {});

// What the Program plans and perf predicts, compared with the compiler's result.
Node beside_node(const JobOnSlice& job, const Proof& proof);

// The prediction alone, against the nominal memory of a device.
Node predicted_node(const JobOnSlice& job, const Slice& slice);

}  // namespace systole::prove
