#pragma once
// Shared by `run` and `resume`: from a workload and a folder to an exit code.

#include <optional>

#include "operate/cli/command.h"
#include "operate/run/run_arguments.h"
#include "operate/run/train_run.h"

namespace systole::cli {

// `held`: the folder, if it is already claimed, with any ResumeMode.
ExitCode run_workload(const Workload& workload, PrepareOptions preparing, const RunArguments& arguments,
                      ResumeMode begins, Context& context, std::optional<RunFolder> held = {});

}  // namespace systole::cli
