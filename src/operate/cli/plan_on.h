#pragma once
// `systole plan WORKLOAD --on TARGETS`: on what, and laid out how, training is fastest or cheapest, before anything is
// rented.

#include "operate/cli/options.h"
#include "operate/cli/plan_here.h"
#include "operate/cli/workload_options.h"
#include "operate/render/quota_need.h"
#include "predict/plan/sensitivities.h"
#include "predict/plan/sizes.h"
#include "predict/prove/proof.h"

namespace systole::cli {

struct PlanOnOptions {
  std::vector<std::string> targets, regions, zones;
  std::string objective = "fastest", deadline, budget, stack, explain, charts;
  std::vector<std::string> precision;
  std::int64_t chips_at_most = OfferRules().chips_at_most, best = 5, prove = 0;
  std::vector<std::int64_t> scale;
  bool all = false, exhaustive = false, scale_batch = false;
};
void add_plan_on_options(Subcommand command, PlanOnOptions& options);
// Errors: invalid or not_found, naming the option.
Result<OfferRules> offer_rules(const PlanOnOptions& options, const Workload& workload);
Result<ChoiceRequest> choice_request(const PlanOnOptions& options, const Workload& workload);  // without offers

// What partitioning must know of an accelerator: nothing of its speed. Its compilers fuse elementwise ops.
Target target_of_accelerators();

// What a compiler said of a layout.
struct ProvedLayout {
  std::size_t offer = 0;
  Candidate candidate;
  Bytes predicted;
  std::optional<prove::Proof> proof;
  std::string why;  // there is none
  bool cached = false;
};

// What plans do not price yet: terms other than on demand.
void warn_of_left_out(const Workload& workload, Context& context);

// Errors: unsupported: a model without layers that repeat.
Status check_layers(const WorkloadArguments& arguments, const Workload& workload);

// All that is told of a plan for hardware that is offered.
struct OfferedPlan {
  WorkloadArguments arguments;
  Workload workload;  // as asked
  std::int64_t parameters = 0, trainable = 0, context = 0;
  OfferRules rules;
  ChoiceRequest request;
  OfferChoice choice;
  std::vector<std::pair<std::string, std::string>> left_out;
  std::vector<SizeOption> sizes;           // of the chosen offer, others
  std::vector<Sensitivity> sensitivities;  // of the choice
  std::vector<ProvedLayout> proved;        // with --prove: in the order of the search
  std::optional<SizeOption> larger;        // where nothing was chosen: what would do
  std::optional<ThisMachine> here;         // where --on names it, as any does
  std::vector<QuotaNeed> quotas;           // of a project that makes the choice's nodes in a cluster of GKE
  std::string catalog_date, catalog_hash, today;
  Seconds searched;  // how long it took
};

// `out`: a file for the plan; empty: none.
ExitCode plan_on(const WorkloadArguments& arguments, const PlanOnOptions& options, const std::string& out,
                 Context& context);

}  // namespace systole::cli
