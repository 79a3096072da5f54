#pragma once
// A workload's plan on this machine's cores: for `systole explain`, beside the offers of `systole plan --on`, and for
// the size of a first model. Nothing is run and no text is read.

#include <span>

#include "describe/spec/plan.h"
#include "ground/base/clock.h"
#include "operate/explain/topic.h"

namespace systole {

// On one device, whatever the workload's mesh. `shapes`: of data.buckets, with their steps of an epoch; the step is then
// the mean. REQUIRES: it has a model, of so many parameters. Errors: does_not_fit: not even its parameters do; those of
// make_job and open_machine.
Result<PlanFacts> plan_here(const Workload& workload, std::int64_t parameters, Clock& clock,
                            std::span<const PlannedShape> shapes = {});

}  // namespace systole
