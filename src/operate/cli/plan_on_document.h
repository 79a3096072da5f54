#pragma once
// A choice among offered hardware as the Plan that `systole run --plan` takes.

#include "describe/spec/plan.h"
#include "operate/cli/plan_on.h"

namespace systole::cli {

// REQUIRES: something was chosen. Errors: as programs_of.
Result<Plan> chosen_plan(const OfferedPlan& plan, Clock& clock);

// The Plan with all that it was chosen from behind it, as "search"; where nothing was chosen that alone.
Result<Node> plan_document(const OfferedPlan& plan, Clock& clock);

}  // namespace systole::cli
