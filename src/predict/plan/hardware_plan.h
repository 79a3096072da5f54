#pragma once
// Plans training on offered hardware: which hardware and which layout train a workload fastest or cheapest, and why
// every other option lost.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "describe/spec/plan.h"
#include "ground/base/clock.h"
#include "ground/catalog/tables.h"
#include "predict/plan/choice.h"
#include "predict/plan/layout_prover.h"
#include "predict/plan/offer_storages.h"
#include "predict/plan/plan_messages.h"
#include "predict/plan/sensitivities.h"
#include "predict/plan/sizes.h"
#include "predict/plan/target_fit.h"

namespace systole {

// A plan for hardware that is offered.
struct HardwarePlan {
  Workload workload;  // as asked
  std::int64_t parameters = 0, trainable = 0, sequence_length = 0;
  std::vector<PlannedShape> shapes;  // of data.buckets, with their steps of an epoch; empty: rows of one length
  OfferRules rules;
  ChoiceRequest request;
  OfferChoice choice;
  std::vector<std::pair<std::string, std::string>> left_out;
  std::vector<SizeOption> sizes;           // other sizes of the chosen offer
  std::vector<Sensitivity> sensitivities;  // of the choice
  std::vector<ProvedLayout> proved;        // with --prove; in the order of the search
  std::optional<SizeOption> larger;        // where nothing was chosen: a size that would do
  std::string catalog_date, catalog_hash, today;
  Seconds searched;                 // how long the search took
  bool this_machine = false;        // also asked for, beside the offers
  std::vector<TargetNote> targets;  // that can run the choice
  std::optional<PlannedFeed> feed;  // of the choice, for its Plan
  std::string mount;                // of the volume that the rows are in; empty: none
};

struct OfferedPlanRequest {
  const Workload& workload;  // as asked
  std::string path;          // of its document, for the location of errors
  std::vector<std::string> targets;
  std::vector<const JobTargetRow*> run_by;  // the job targets that are to run it; empty: any
  OfferRules rules;
  ChoiceRequest choice;                   // without its offers
  std::size_t proved = 0;                 // layouts to compile
  std::string today;                      // "2026-11-27"
  std::optional<StorageFacts> storage;    // of rows in a volume; nothing: storage is not counted
  std::vector<PlannedShape> shapes = {};  // as HardwarePlan has them
};
// An offer that no target of `run_by` can run loses, with the table's reason.
// REQUIRES: a model whose layers repeat. Errors: as planned_offers, bar_offers and LayoutProver::check; invalid,
// does_not_fit: limits that contradict each other, or prices that are needed and unknown.
Result<HardwarePlan> plan_offered(OfferedPlanRequest request, CatalogTables& tables, const Catalog& catalog,
                                  const PlanMessages& messages, Clock& clock);

// Why nothing was chosen: nothing fits, or nothing meets the limits. REQUIRES: nothing was chosen. Kind: does_not_fit.
Error refusal_of(const HardwarePlan& plan);

// Checks that `run --plan` can run the choice as planned: its products are in bf16 or f32, which a workload can ask
// for. REQUIRES: something was chosen. Errors: unsupported.
Status check_runs_as_planned(const HardwarePlan& plan);

// Null: no compiler was asked about it.
const ProvedLayout* proof_of_layout(const HardwarePlan& plan, const Estimated& estimated);

// Finds an option by its printed number, from 1, or by words of its name. Errors: not_found, with the options that
// exist; invalid: none of its layouts fits, or no target can run it, so there is nothing to explain.
Result<const LostOption*> lost_option(const HardwarePlan& plan, const std::string& words);

// A warning where exposed communication takes much of the chosen step.
std::optional<std::string> exposed_warning(const HardwarePlan& plan);

// The plan's shapes, with the times of an option's steps.
std::vector<PlannedShape> shapes_of(const HardwarePlan& plan, const Estimated& estimated);
// Of a step: as many as its rows have positions; of several lengths the mean, padding not counted.
double tokens_a_step(const HardwarePlan& plan);

std::string option_name(const HardwarePlan& plan, const LostOption& lost);  // its layout, or its hardware
// "--set 'mesh={fsdp: 8}' --set train.microbatches=4".
std::string set_words(const HardwarePlan& plan, const Candidate& candidate);
// The edit that makes an option win, as words of a command line.
std::string edit_words(const HardwarePlan& plan, const LostOption& lost);

}  // namespace systole
