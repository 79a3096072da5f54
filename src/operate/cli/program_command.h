#pragma once
// `systole run` of a workload with `command`: the user's program on several ranks.

#include <optional>

#include "operate/cli/command.h"
#include "operate/run/run_arguments.h"
#include "operate/run/train_run.h"

namespace systole::cli {

// `claimed`: the folder, if already claimed.
ExitCode run_program(const Workload& workload, const RunArguments& arguments, Context& context,
                     std::optional<RunFolder> claimed = {});

}  // namespace systole::cli
