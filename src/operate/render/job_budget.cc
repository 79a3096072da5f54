#include "operate/render/job_budget.h"

namespace systole {

std::optional<DollarsPerHour> usd_per_hour(const Workload& workload, const Plan* plan, std::int64_t machines) {
  if (const auto price = workload.resources.price) return *price * static_cast<double>(machines);
  if (plan != nullptr && plan->cost && plan->cost->known) return plan->cost->dollars_per_hour;
  return {};
}

Result<std::optional<Seconds>> budget_time(const Workload& workload, std::optional<DollarsPerHour> price,
                                           std::int64_t machines) {
  if (!workload.objective.budget) return std::optional<Seconds>();
  if (!price || *price <= DollarsPerHour())
    return key_error(ErrorKind::invalid, "objective.budget", "nobody knows what an hour of its machine{} costs",
                     machines == 1 ? "" : "s")
        .coded(ErrorCode::price_unknown)
        .hinted(
            "resources.price: DOLLARS of an hour of one; a plan for hardware of the catalog; or take "
            "objective.budget out");
  return std::optional(*workload.objective.budget / *price);
}

}  // namespace systole
