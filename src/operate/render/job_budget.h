#pragma once
// Converts a run's budget to machine time, at the total price of its machines.

#include <cstdint>
#include <optional>

#include "describe/spec/plan.h"
#include "describe/spec/workload.h"
#include "ground/base/result.h"
#include "ground/base/units.h"

namespace systole {

// Price of so many machines together: from the workload, otherwise from the plan, which may be null. Nothing: unknown.
std::optional<DollarsPerHour> usd_per_hour(const Workload& workload, const Plan* plan, std::int64_t machines);
// `price`: of all machines together. Nothing without a budget. Errors: invalid, if the price is unknown.
Result<std::optional<Seconds>> budget_time(const Workload& workload, std::optional<DollarsPerHour> price,
                                           std::int64_t machines);

}  // namespace systole
