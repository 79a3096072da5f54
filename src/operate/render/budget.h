#pragma once
// What a run's budget buys: time of its machines, at the price of all of them together.

#include <cstdint>
#include <optional>

#include "describe/spec/plan.h"
#include "describe/spec/workload.h"
#include "ground/base/result.h"

namespace systole {

// Dollars that an hour of so many machines costs: by the workload, else by the plan, which may be null. Nothing: nobody
// knows.
std::optional<double> usd_per_hour(const Workload& workload, const Plan* plan, std::int64_t machines);
// Nothing without a budget. Errors: invalid, where nobody knows the price.
Result<std::optional<Seconds>> budget_time(const Workload& workload, const Plan* plan, std::int64_t machines);

}  // namespace systole
