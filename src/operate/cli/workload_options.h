#pragma once
// The options of commands that take a workload.

#include "operate/cli/command.h"
#include "operate/cli/options.h"
#include "operate/run/workload_arguments.h"

namespace systole::cli {

void add_workload_arguments(Subcommand command, WorkloadArguments& arguments);

// As systole::prepare_options, with progress of building the data.
Result<PrepareOptions> prepare_options(const WorkloadArguments& arguments, const LoadedWorkload& loaded,
                                       Context& context);
// Progress of building a workload's data: continuous on a terminal, otherwise one message for slow builds.
DataProgress data_progress(const Workload& workload, Context& context);

}  // namespace systole::cli
