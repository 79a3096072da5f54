#pragma once
// The arguments that give a command its workload: a file, overrides, and limits on this machine.

#include <string>
#include <vector>

#include "operate/run/plan_run.h"

namespace systole {

struct WorkloadArguments {
  std::string path;
  std::string environment;
  std::vector<std::string> sets;
  std::string memory;  // "2GiB"; empty: the workload's limit, or the machine's
  std::string backend = "cpu";
  std::string pin_isa;    // instructions that the cpu is pinned to; empty: all it has
  bool command = false;   // accepts a workload that runs its own program
  bool machines = false;  // accepts a workload of machines only, on which nothing runs
  bool serves = false;    // accepts a workload of kind serve
  bool kept = false;      // the workload is a run's own and complete; files that it names may be gone
};

// "job.yaml --env quick --memory 2GiB": arguments for the same workload, quoted for a shell.
std::string words_of(const WorkloadArguments& arguments);
// Hints of what knows no file say JOB.yaml: puts what was typed there, if something was.
Error naming_file(const WorkloadArguments& typed, Error error);
// Only those that a resumed run does not find in its folder: " --memory 2GiB"; empty: none.
std::string machine_words(const WorkloadArguments& arguments);

struct LoadedWorkload {
  Workload workload;
  WorkloadSource source;
};
// Errors: not_found; invalid, all at once.
Result<LoadedWorkload> load_workload(const WorkloadArguments& arguments);
// Options to prepare the workload with, without data progress. Pins this process to the requested instructions. Errors:
// invalid, unsupported.
Result<PrepareOptions> prepare_options(const WorkloadArguments& arguments, const LoadedWorkload& loaded);

}  // namespace systole
