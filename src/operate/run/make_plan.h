#pragma once
// Builds the Plan document from a prepared job.

#include "operate/run/plan_run.h"

namespace systole {

// `limit`: of the whole process. REQUIRES: `p` is complete except for the plan.
Plan make_plan(const PlannedRun& p, Bytes limit, Clock& clock);

}  // namespace systole
