#pragma once
// `systole run --plan`: a run of what was planned, and of nothing else.

#include <optional>
#include <span>
#include <string>

#include "describe/spec/plan.h"
#include "operate/cli/workload_options.h"

namespace systole::cli {

constexpr const char* kPlannedElsewhere = "offered";  // fact "kind" of the target of a plan for offered hardware
bool planned_elsewhere(const Plan& plan);

// The workload of the plan in that file. Errors: not_found; as read_plan.
Result<Plan> plan_in(const std::string& path);

// The seed and the budget may be set beside a plan; whatever else makes another Program. Errors: invalid.
Status lay_over_plan(std::span<const std::string> sets, Workload& workload);

// Whether this node has the memory for the plan's devices, before anything is prepared. Errors: does_not_fit.
Status room_for(const Plan& plan, Bytes of_node, const std::string& backend);

// Whether the Program that was made here is the one that was planned. Of a plan for offered hardware the Program is for
// other kernels: the FLOPs that the model asks for are compared, and what is returned says where it runs now. Errors:
// invalid, with what changed: the version, the target, or a fact of it.
Result<std::optional<std::string>> hold_to_plan(const Plan& planned, const Plan& now);

}  // namespace systole::cli
