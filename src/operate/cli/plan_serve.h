#pragma once
// `systole plan WORKLOAD` of workload: serve: how many users a device carries, at what latency, for what price; here, or
// --on offered hardware.

#include "operate/cli/plan_on.h"

namespace systole::cli {

// `out`: of --out, which is refused: nothing runs from such a plan.
ExitCode plan_serve(const WorkloadArguments& arguments, const LoadedWorkload& loaded, const PlanOnOptions& options,
                    const std::string& out, Context& context);

}  // namespace systole::cli
