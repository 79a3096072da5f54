#pragma once
// `systole prove WORKLOAD`: a workload's training step as a module on a slice.

#include <string>

#include "operate/run/workload_arguments.h"
#include "predict/prove/job_on_slice.h"

namespace systole {

// `mesh`: "data=4,model=2", replaces the workload's. Errors: those of loading it and of its Program, at their position;
// unsupported: an op or type that cannot be lowered, several microbatches.
Result<prove::JobOnSlice> job_on(const WorkloadArguments& arguments, const std::string& mesh, const prove::Slice& slice,
                                 const Catalog& catalog);

}  // namespace systole
