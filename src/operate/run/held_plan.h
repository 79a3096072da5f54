#pragma once
// `systole run --plan`: a run that is held to a plan.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "describe/spec/plan.h"
#include "describe/spec/workload.h"

namespace systole {

// The plan in that file. Errors: not_found; as read_plan.
Result<Plan> plan_in(const std::string& path);

// The targets that are to run a plan for offered hardware, as `plan --on` had or implied them; empty: none.
std::vector<std::string> targets_of(const Plan& plan);

// Applies --set values beside a plan. Only the seed and the budget may be set; anything else changes the Program.
// Errors: invalid.
Status lay_over_plan(std::span<const std::string> sets, Workload& workload);

// Checks this node's memory against the plan's devices, before anything is prepared. Errors: does_not_fit.
Status room_for(const Plan& plan, Bytes of_node, const std::string& backend);

// Checks that the Program made here is the planned one. A plan for offered hardware has a Program for other kernels:
// then the model's FLOPs are compared, and the returned text says where it runs now. Errors: invalid, with what
// changed: the version, the target, one of its facts, or the lengths of rows, which follow from the data.
Result<std::optional<std::string>> hold_to_plan(const Plan& planned, const Plan& now);

}  // namespace systole
