#include "operate/cli/plan_on_document.h"

#include "describe/graph/collectives_of.h"
#include "describe/models/list.h"
#include "operate/cli/held_plan.h"
#include "operate/cli/plan_on_node.h"
#include "operate/cli/plan_on_text.h"
#include "operate/cli/prediction_error.h"
#include "operate/cli/version.h"

namespace systole::cli {
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

PlannedTime time_of(const OfferedPlan& plan, const Estimated& e) {
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
  return time;
}

PlannedTarget target_of(const OfferedPlan& plan, const PlannedOffer& offer) {
  PlannedTarget target;
  target.name = offer.offered.name;
  target.facts = {{"kind", kPlannedElsewhere}, {"stack", plan.rules.stack.name}};
  target.catalog_entry = offer.accelerator;
  target.catalog_date = plan.catalog_date;
  target.catalog_hash = plan.catalog_hash;
  return target;
}

PlannedCost cost_of(const PlannedOffer& offer, const Estimated& e) {
  PlannedCost cost;
  cost.offer = offer.offered.name;
  cost.on = offer.target;
  cost.provisioning = name_of(offer.price.provisioning);
  cost.zone = offer.zone;
  cost.price_date = offer.price.dated.date;
  cost.known = offer.offered.price.has_value();
  if (cost.known) cost.dollars_per_hour = offer.offered.price->count();
  if (e.dollars) cost.dollars = e.dollars->count();
  return cost;
}

}  // namespace

Result<Plan> chosen_plan(const OfferedPlan& from, Clock& clock) {
  const Estimated& e = *from.choice.chosen;
  const PlannedOffer& offer = from.request.offers[e.offer];
  const CandidatePrograms made = TRY(programs_of(from.workload, e.candidate, target_of_accelerators()));
  const Program& first = *made.stages.front();
  const Schedule& train = first.schedule_named("train");
  const Work work = work_of(first, train);
  Plan plan;
  plan.workload = workload_of(from.workload, e.candidate);
  plan.target = target_of(from, offer);
  plan.mesh = plan.workload.mesh;
  plan.strategy = to_string(e.candidate);
  plan.program.hash = hash_of(first);
  plan.program.actions = static_cast<std::int64_t>(train.actions.size());
  plan.program.devices = e.candidate.devices();
  plan.program.parameters = from.parameters;
  plan.program.trainable = from.trainable;
  plan.program.model_flops = Flops(work.model_flops);
  plan.program.executed_flops = Flops(work.flops);
  plan.program.moved = work.read + work.written;
  plan.program.sent = bytes_sent(first, train, 0);
  plan.memory.by_owner = e.memory.terms;
  plan.memory.arena = first.arena;
  plan.memory.limit = offer.offered.cluster.chip.capacity;
  plan.time = time_of(from, e);
  plan.cost = cost_of(offer, e);
  plan.model_utilisation = e.utilisation;
  for (const LostOption& lost : from.choice.lost)
    plan.lost.push_back({option_name(from, lost), lost.reason, edit_words(from, lost)});
  plan.made_by = kVersion;
  plan.made_at = clock.timestamp();
  return plan;
}

Result<Node> plan_document(const OfferedPlan& plan, Clock& clock) {
  Node document = Node::map();
  if (plan.choice.chosen) document = TRY(parse_json(to_json(TRY(chosen_plan(plan, clock))), "plan.json"));
  document.set("search", offered_plan_node(plan));
  return document;
}

}  // namespace systole::cli
