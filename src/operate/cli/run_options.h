#pragma once
// The options of `run`, `resume` and `rank`.

#include "operate/cli/command.h"
#include "operate/run/run_arguments.h"

namespace systole::cli {

void add_run_arguments(Subcommand command, RunArguments& arguments);  // except ranks and budget
void add_rank_arguments(Subcommand command, RankArguments& arguments);
void add_budget_arguments(Subcommand command, BudgetArguments& arguments);

}  // namespace systole::cli
