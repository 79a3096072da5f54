#pragma once
// What `systole plan --on` asks for, as its options have it, and the plan of that: hardware and layout, and this machine
// beside them.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "describe/spec/job_target_table.h"
#include "operate/render/quota_need.h"
#include "operate/run/catalog_files.h"
#include "operate/run/plan_here.h"
#include "operate/run/workload_arguments.h"
#include "predict/plan/feed_storage.h"
#include "predict/plan/hardware_plan.h"

namespace systole {

struct PlanOnOptions {
  std::vector<std::string> targets, regions, zones;
  std::string objective = "fastest", deadline, budget, stack, explain, charts;
  std::vector<std::string> precision, search;
  std::int64_t chips_at_most = OfferRules().chips_at_most, best = 5, prove = 0;
  std::vector<std::int64_t> scale;
  bool all = false, exhaustive = false, scale_batch = false;
};
// What --on names: hardware, and the targets that are to run the workload on it.
struct NamedOn {
  std::vector<std::string> hardware;
  std::vector<const JobTargetRow*> targets;
};
NamedOn named_on(const std::vector<std::string>& on);

// Errors: invalid or not_found, naming the option.
Result<OfferRules> offer_rules(const PlanOnOptions& options, const Workload& workload);
// The same in the place where the workload's keys have its nodes made. Errors: also invalid: an option excludes that.
Result<OfferRules> placed_rules(const PlanOnOptions& options, const LoadedWorkload& loaded);
Result<ChoiceRequest> choice_request(const PlanOnOptions& options, const Workload& workload);  // without offers

// Errors: unsupported: the model has no repeated layers.
Status check_layers(const WorkloadArguments& arguments, const Workload& workload);

// The lengths of rows with their steps of an epoch, from the rows that are built; empty: no data.buckets. Errors:
// not_found: they are not built; as check_shapes, whatever the mesh; invalid: a length without a full step.
Result<std::vector<PlannedShape>> built_shapes(const WorkloadArguments& arguments, const LoadedWorkload& loaded);

// Everything printed about a plan for offered hardware.
struct PlanReport : HardwarePlan {
  WorkloadArguments arguments;
  std::optional<PlanFacts> here;          // if --on names this machine, and it can train
  std::optional<OfferedFeed> feed_there;  // of the choice, beside its storage; nothing: not rows of text
  std::vector<QuotaNeed> quotas;          // for the project that creates the choice's nodes in a GKE cluster
};

// Errors: as offer_rules, choice_request, check_layers, built_shapes and plan_offered; invalid: no hardware is named.
Result<PlanReport> plan_on_offers(const WorkloadArguments& arguments, const LoadedWorkload& loaded,
                                  const PlanOnOptions& options, CatalogView& view, const PlanMessages& messages,
                                  Clock& clock);

}  // namespace systole
