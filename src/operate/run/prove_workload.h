#pragma once
// What `systole prove` asks: which program, on which slice, and how; and a workload's training step as a module.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "operate/run/workload_arguments.h"
#include "predict/prove/job_on_slice.h"
#include "predict/prove/prove.h"

namespace systole {

// As its options have them.
struct ProveArguments {
  std::string file, on, mesh, timeout, max_memory, plugins, child;
  std::string environment;
  std::vector<std::string> sets;
  std::int64_t partitions = 0, replicas = 0;
  std::vector<std::string> flags;
  bool time = false, fresh = false, list = false, predict = false;
};

// "job.yaml --on v5e:2x2 --mesh data=4": arguments for the same question.
std::string words_of(const ProveArguments& arguments);
// Errors: invalid: --xla, --timeout, --max-memory.
Result<prove::ProveOptions> options_of(const ProveArguments& arguments);
// Errors: invalid: no program or no slice is named; those of find_slice.
Result<prove::Slice> slice_asked(const ProveArguments& arguments, const Catalog& catalog);

struct StepsOnSlice {
  std::vector<prove::JobOnSlice> steps;  // as prove::lowered_on; with data.buckets of the lengths that the data have
  std::optional<Error> note;             // which lengths are not known
};
// `mesh`: "data=4,model=2", replaces the workload's. Errors: those of loading it and of its Program, at their position;
// unsupported: an op or type that cannot be lowered, several microbatches.
Result<StepsOnSlice> steps_on(const WorkloadArguments& arguments, const std::string& mesh, const prove::Slice& slice,
                              const Catalog& catalog);

}  // namespace systole
