#pragma once
// Model FLOPs of training on one row, by its length: of the Program for rows of that length, on a device that runs
// nothing.

#include <cstdint>
#include <functional>

#include "describe/spec/plan.h"
#include "ground/base/clock.h"

namespace systole {

// REQUIRES: a model of texts, not of pairs. The function makes a Program for each length that it has not seen, and
// throws Failure where make_job fails. Errors: those of open_machine.
Result<std::function<double(std::int64_t length)>> row_flops(const Workload& workload, Clock& clock);

// Model FLOPs a second of the plan's machines, predicted for its own rows. Errors: invalid: the plan is
// not of training on texts, or predicts no time; those of row_flops.
Result<FlopRate> planned_flop_rate(const Plan& plan, Clock& clock);

}  // namespace systole
