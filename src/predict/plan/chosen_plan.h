#pragma once
// Turns a choice among offered hardware into the Plan that `systole run --plan` takes.

#include "describe/spec/plan.h"
#include "predict/plan/hardware_plan.h"
#include "predict/plan/hardware_plan_node.h"

namespace systole {

inline constexpr const char* kPlannedElsewhere = "offered";  // fact "kind" of the target of such a plan
inline constexpr const char* kPlannedRunBy = "run_by";       // fact: the job targets that are to run it, by commas

// REQUIRES: something was chosen. Errors: as programs_of.
Result<Plan> chosen_plan(const HardwarePlan& plan, Clock& clock);

// The Plan, with all that it was chosen from under "search"; where nothing was chosen, "search" alone.
Result<Node> plan_document(const HardwarePlan& plan, const PlanAdditions& beside, Clock& clock);

}  // namespace systole
