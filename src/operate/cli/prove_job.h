#pragma once
// `systole prove WORKLOAD`: the training step of a workload as a module for a slice.

#include <optional>
#include <string>

#include "describe/graph/program.h"
#include "describe/stablehlo/module.h"
#include "ground/catalog/catalog.h"
#include "operate/cli/workload_options.h"
#include "predict/perf/compiled_peak.h"
#include "predict/perf/op_time.h"
#include "predict/prove/proof.h"
#include "predict/prove/slice.h"

namespace systole::cli {

struct JobOnSlice {
  std::string name;  // of the workload
  std::string mesh;  // "data=2 model=2"; "one device"
  Program program;   // the training step is its function kStepFunction
  stablehlo::Module module;
  CompiledPeak peak;  // what its compiler is predicted to need
  // That it is predicted to schedule of computing; nothing of a chip of which perf has no rates.
  std::optional<TimeByClass> compute;
};

// `mesh`: "data=4,model=2", in place of the workload's. Errors: those of loading it and of its Program, at their place;
// unsupported: an op or type that cannot be lowered, several microbatches.
Result<JobOnSlice> job_on(const WorkloadArguments& arguments, const std::string& mesh, const prove::Slice& slice,
                          const Catalog& catalog);

// The same of a workload as it is; its mesh has no more devices than the slice. Errors: as make_job; unsupported as
// above.
Result<JobOnSlice> job_on(const Workload& workload, const prove::Slice& slice, const Catalog& catalog);

// What the Program plans and perf predicts beside what the compiler made: after proof_text.
std::string beside_text(const JobOnSlice& job, const prove::Proof& proof, int width);
Node beside_node(const JobOnSlice& job, const prove::Proof& proof);

// The prediction alone, against the memory that a device is sold with.
std::string predicted_text(const JobOnSlice& job, const prove::Slice& slice);
Node predicted_node(const JobOnSlice& job, const prove::Slice& slice);

}  // namespace systole::cli
