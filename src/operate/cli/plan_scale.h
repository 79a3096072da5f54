#pragma once
// `systole plan WORKLOAD --on h100,v5p --scale 64,128,256`: the same training on more and more chips, and where scaling
// stops paying off.

#include "operate/cli/plan_on.h"
#include "predict/plan/scaled_plan.h"

namespace systole::cli {

ExitCode plan_scale(const WorkloadArguments& arguments, const LoadedWorkload& loaded, const PlanOnOptions& options,
                    Context& context);

}  // namespace systole::cli
