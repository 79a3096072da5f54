#pragma once
// The options of commands that take a workload, declared once.

#include <string>
#include <vector>

#include "operate/cli/command.h"
#include "operate/cli/options.h"
#include "operate/cli/session.h"

namespace systole::cli {

struct WorkloadArguments {
  std::string path;
  std::string environment;
  std::vector<std::string> sets;
  std::string memory;  // "2GiB"; empty: the workload's, or the machine's
  std::string backend = "cpu";
  std::string pin_isa;    // instructions that the cpu is held to; empty: all that it has
  bool command = false;   // one that runs a program of its own will do
  bool machines = false;  // machines alone, of which nothing runs, may stand in it
  bool kept = false;      // the workload is a run's own, which says everything: files that it names may be gone
};

void add_workload_arguments(Subcommand command, WorkloadArguments& arguments);

// "job.yaml --env quick --memory 2GiB": the words that give a command the same workload, quoted for a shell.
std::string words_of(const WorkloadArguments& arguments);
// Of these only what a resumed run is not told by its folder: " --memory 2GiB"; empty for nothing.
std::string machine_words(const WorkloadArguments& arguments);

struct LoadedWorkload {
  Workload workload;
  WorkloadSource source;
};
// Errors: not_found; invalid, all at once.
Result<LoadedWorkload> load_workload(const WorkloadArguments& arguments);
Result<PrepareOptions> prepare_options(const WorkloadArguments& arguments, const LoadedWorkload& loaded,
                                       Context& context);
// Tells of the making of a workload's data: on a terminal as it goes on, else once, of what takes long.
Progress data_progress(const Workload& workload, Context& context);

}  // namespace systole::cli
