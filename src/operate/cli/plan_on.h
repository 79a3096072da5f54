#pragma once
// `systole plan WORKLOAD --on TARGETS`: the hardware and layout on which training is fastest or cheapest, before
// anything is rented.

#include "operate/cli/options.h"
#include "operate/cli/workload_options.h"
#include "operate/run/plan_on_request.h"

namespace systole::cli {

void add_plan_on_options(Subcommand command, PlanOnOptions& options);

// Warns about costs that the estimate omits: TLS, and prices of terms other than on demand.
void warn_of_left_out(const Workload& workload, Context& context);

// `out`: a file for the plan; empty: none.
ExitCode plan_on(const WorkloadArguments& arguments, const LoadedWorkload& loaded, const PlanOnOptions& options,
                 const std::string& out, Context& context);

}  // namespace systole::cli
