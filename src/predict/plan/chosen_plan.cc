#include "predict/plan/chosen_plan.h"

#include "describe/models/list.h"
#include "describe/program/collectives_of.h"
#include "ground/base/version.h"
#include "predict/plan/build_plan.h"
#include "predict/plan/hardware_plan_node.h"
#include "predict/plan/prediction_error.h"

namespace systole {
namespace {

Category category_of(StepShare share) {
  switch (share) {
    case StepShare::products:
    case StepShare::attention:
    case StepShare::movement:
    case StepShare::host: return Category::compute;
    case StepShare::update: return Category::update;
    case StepShare::bubble:
    case StepShare::fixed: return Category::other;
    default: return Category::reduce;
  }
}

PlannedTime time_of(const HardwarePlan& plan, const Estimated& e) {
  PlannedTime time;
  time.steps = plan.request.steps;
  for (int s = 0; s < kNumStepShares; ++s) {
    const auto share = static_cast<StepShare>(s);
    const Seconds spent(e.step[share]);
    if (spent <= Seconds()) continue;
    time.step[category_of(share)] += spent;
    time.run[category_of(share)] += spent * time.steps;
    if (category_of(share) == Category::compute) time.compute_by_kind.emplace_back(name_of(share), spent);
  }
  const KnownError* known =
      known_error_of(prediction_kind(plan.workload, plan.request.offers[e.offer].offered), "step_time");
  if (known != nullptr) time.known_error = known->mean;
  if (e.waited > Seconds()) {
    time.step[Category::data_wait] += e.waited;
    time.run[Category::data_wait] += e.waited * time.steps;
  }
  return time;
}

PlannedTarget target_of(const HardwarePlan& plan, const ClusterOffer& offer) {
  PlannedTarget target;
  target.name = offer.offered.name;
  target.facts = {{"kind", kPlannedElsewhere}, {"stack", plan.rules.stack.name}};
  std::string run_by;
  for (const TargetNote& note : plan.targets) run_by += (run_by.empty() ? "" : ",") + note.target;
  if (!run_by.empty()) target.facts[kPlannedRunBy] = run_by;
  target.catalog_entry = offer.accelerator;
  target.catalog_date = plan.catalog_date;
  target.catalog_hash = plan.catalog_hash;
  return target;
}

PlannedCost cost_of(const ClusterOffer& offer, const Estimated& e) {
  PlannedCost cost;
  cost.offer = offer.offered.name;
  cost.on = offer.target;
  cost.provisioning = name_of(offer.price.provisioning);
  cost.zone = offer.zone;
  cost.price_date = offer.price.dated.date;
  cost.known = offer.offered.price.has_value();
  const std::vector<OfferedStorage>& storages = offer.offered.storages;
  const OfferedStorage stored = storages.empty() ? OfferedStorage() : storages[e.storage];
  cost.known = cost.known && !stored.unpriced;
  if (cost.known) cost.dollars_per_hour = *offer.offered.price + stored.price;
  if (e.dollars) cost.dollars = *e.dollars;
  return cost;
}

}  // namespace

Result<Plan> chosen_plan(const HardwarePlan& from, Clock& clock) {
  const Estimated& e = *from.choice.chosen;
  const ClusterOffer& offer = from.request.offers[e.offer];
  std::vector<std::int64_t> lengths;
  for (const PlannedShape& shape : from.shapes) lengths.push_back(shape.length);
  const CandidatePrograms made = TRY(programs_of(from.workload, e.candidate, target_of_accelerators(), true, lengths));
  const Program& first = *made.stages.front();
  PlanParts parts;
  parts.workload = workload_of(from.workload, e.candidate);
  parts.target = target_of(from, offer);
  parts.strategy = to_string(e.candidate);
  parts.devices = e.candidate.devices();
  parts.parameters = from.parameters;
  parts.trainable = from.trainable;
  parts.shapes = shapes_of(from, e);
  parts.memory = {e.memory.terms, first.arena, offer.offered.cluster.chip.capacity};
  parts.time = time_of(from, e);
  parts.cost = cost_of(offer, e);
  parts.feed = from.feed;
  parts.model_utilisation = e.utilisation;
  for (const LostOption& lost : from.choice.lost)
    parts.lost.push_back({option_name(from, lost), lost.reason, edit_words(from, lost)});
  return build_plan(std::move(parts), first, kSystoleVersion, clock.timestamp());
}

Result<Node> plan_document(const HardwarePlan& plan, const PlanAdditions& beside, Clock& clock) {
  Node document = Node::map();
  if (plan.choice.chosen) document = to_node(TRY(chosen_plan(plan, clock)));
  document.set("search", offered_plan_node(plan, beside));
  return document;
}

}  // namespace systole
