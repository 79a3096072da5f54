#pragma once
// `systole run` of a workload with `command`: the user's program on many ranks, under operate/launch.

#include "describe/spec/workload.h"
#include "operate/cli/budget.h"
#include "operate/cli/rank_options.h"

namespace systole::cli {

// Logs go to `folder`/logs, a file a rank and generation.
ExitCode run_program(const Workload& workload, const std::string& folder, const RankArguments& arguments,
                     const BudgetArguments& budget, bool dry_run, Context& context);

}  // namespace systole::cli
