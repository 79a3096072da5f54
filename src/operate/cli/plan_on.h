#pragma once
// `systole plan WORKLOAD --on TARGETS`: the hardware and layout on which training is fastest or cheapest, before
// anything is rented.

#include "describe/spec/job_target_table.h"
#include "operate/cli/options.h"
#include "operate/cli/workload_options.h"
#include "predict/plan/hardware_plan.h"

namespace systole::cli {

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

void add_plan_on_options(Subcommand command, PlanOnOptions& options);
// Errors: invalid or not_found, naming the option.
Result<OfferRules> offer_rules(const PlanOnOptions& options, const Workload& workload);
Result<ChoiceRequest> choice_request(const PlanOnOptions& options, const Workload& workload);  // without offers

// Warns about costs that the estimate omits: TLS, and prices of terms other than on demand.
void warn_of_left_out(const Workload& workload, Context& context);

// Errors: unsupported: the model has no repeated layers.
Status check_layers(const WorkloadArguments& arguments, const Workload& workload);

// `out`: a file for the plan; empty: none.
ExitCode plan_on(const WorkloadArguments& arguments, const LoadedWorkload& loaded, const PlanOnOptions& options,
                 const std::string& out, Context& context);

}  // namespace systole::cli
