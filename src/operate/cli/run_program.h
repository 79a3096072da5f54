#pragma once
// `systole run` of a workload with `command`: the user's program on many ranks, under operate/launch.

#include "describe/spec/workload.h"
#include "operate/cli/run_command.h"

namespace systole::cli {

// Logs go to arguments.folder/logs, a file a rank and generation.
ExitCode run_program(const Workload& workload, const RunArguments& arguments, Context& context);

}  // namespace systole::cli
