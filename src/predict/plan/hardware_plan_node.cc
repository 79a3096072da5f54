#include "predict/plan/hardware_plan_node.h"

#include "predict/plan/layout_edit.h"
#include "predict/plan/layout_prover.h"
#include "predict/plan/prediction_error.h"

namespace systole {
namespace {

Node maybe(const std::optional<Dollars>& dollars) { return dollars ? Node(dollars->count()) : Node(); }

Node offer_node(const ClusterOffer& offer, const std::string& today) {
  const Dated& dated = offer.price.dated;
  return Node::map(
      {{"name", offer.offered.name},
       {"target", offer.target},
       {"accelerator", offer.accelerator},
       {"machine", offer.machine.empty() ? Node() : Node(offer.machine)},
       {"machines", offer.machines},
       {"chips", offer.chips},
       {"devices", offer.offered.cluster.devices},
       {"price", Node::map({{"dollars_per_hour", offer.offered.price ? Node(offer.offered.price->count()) : Node()},
                            {"zone", offer.zone.empty() ? Node() : Node(offer.zone)},
                            {"provisioning", name_of(offer.price.provisioning)},
                            {"date", dated.date.empty() ? Node() : Node(dated.date)},
                            {"old", offer.offered.price && is_old(dated.date, today, kPriceIsOldAfter)},
                            {"source", dated.source.empty() ? Node() : Node(dated.source)},
                            {"note", offer.price.note}})}});
}

// The steps of each length of rows.
Node lengths_node(const HardwarePlan& plan, const Estimated& e) {
  const std::vector<double> shares = step_shares(plan.shapes);
  Node lengths = Node::sequence();
  for (std::size_t s = 0; s < plan.shapes.size(); ++s)
    lengths.push(Node::map({{"row_tokens", plan.shapes[s].length},
                            {"rows", plan.shapes[s].rows},
                            {"share", shares[s]},
                            {"step_seconds", e.lengths[s].count()}}));
  return lengths;
}

Node estimated_node(const HardwarePlan& plan, const Estimated& e) {
  Node mesh = Node::map(), shares = Node::map(), memory = Node::map(), sets = Node::sequence();
  const Workload laid_out = workload_of(plan.workload, e.candidate);
  for (const auto& [axis, size] : laid_out.mesh) mesh.set(axis, size);
  for (int s = 0; s < kNumStepShares; ++s)
    shares.set(name_of(static_cast<StepShare>(s)), e.step[static_cast<StepShare>(s)]);
  for (const auto& [name, bytes] : e.memory.terms) memory.set(name, bytes.count());
  for (const std::string& set : layout_sets(plan.workload, laid_out)) sets.push(set);
  const PredictionKind kind = prediction_kind(plan.workload, plan.request.offers[e.offer].offered);
  const std::int64_t rows = plan.shapes.empty() ? plan.workload.train.batch : plan.shapes.back().rows;
  Node node = Node::map({{"offer", e.offer},
                         {"layout", to_string(e.candidate)},
                         {"products", name_of(plan.request.offers[e.offer].offered.kernels.products)},
                         {"mesh", std::move(mesh)},
                         {"microbatches", e.candidate.microbatches},
                         {"microbatch_rows", local_rows(rows, e.candidate)},
                         {"sets", std::move(sets)},
                         {"step_seconds", e.step.seconds},
                         {"step_known_error", known_error_node(kind, known_error_of(kind, "step_time"))},
                         {"total_seconds", e.total.count()},
                         {"dollars", maybe(e.dollars)},
                         {"model_flops_utilisation", e.utilisation},
                         {"model_flops", e.model_flops},
                         {"seconds_by_share", std::move(shares)},
                         {"memory_bytes", e.memory.total().count()},
                         {"memory_known_error", known_error_node(kind, known_error_of(kind, "memory"))},
                         {"memory_bytes_by_term", std::move(memory)},
                         {"exposed_share", exposed_share(e.step)},
                         {"proof", proved_node(proof_of_layout(plan, e))}});
  if (!plan.request.offers[e.offer].offered.storages.empty()) {
    node.set("storage", storage_words(plan.request.offers[e.offer].offered, e));
    node.set("waited_seconds", e.waited.count());
  }
  if (!plan.shapes.empty()) node.set("lengths", lengths_node(plan, e));
  return node;
}

Node counts_node(const SearchCounts& c) {
  return Node::map({{"candidates", c.candidates},
                    {"over_memory_by_bound", c.over_memory_by_bound},
                    {"over_memory_composed", c.over_memory_composed},
                    {"over_memory", c.over_memory},
                    {"unpriced", c.unpriced},
                    {"over_limit", c.over_limit},
                    {"impossible", c.impossible},
                    {"without_pipelines", c.without_pipelines},
                    {"computed", c.computed},
                    {"left", c.left},
                    {"composed", c.composed}});
}

}  // namespace

Node offered_plan_node(const HardwarePlan& plan, const PlanAdditions& beside) {
  const OfferChoice& choice = plan.choice;
  Node offers = Node::sequence(), lost = Node::sequence(), front = Node::sequence(), sizes = Node::sequence();
  for (const ClusterOffer& offer : plan.request.offers) offers.push(offer_node(offer, plan.today));
  for (const LostOption& one : choice.lost)
    lost.push(Node::map({{"offer", one.offer},
                         {"estimate", one.estimated ? estimated_node(plan, *one.estimated) : Node()},
                         {"reason", one.reason},
                         {"edit", edit_words(plan, one)}}));
  for (const Estimated& one : choice.front) front.push(one.offer);
  for (const SizeOption& size : plan.sizes)
    sizes.push(Node::map({{"target", size.offer.target},
                          {"step_seconds", size.alone.best ? Node(size.alone.best->step.seconds) : Node()},
                          {"total_seconds", size.alone.best ? Node(size.alone.best->total.count()) : Node()},
                          {"dollars", size.alone.best ? maybe(size.alone.best->dollars) : Node()}}));
  Node document = Node::map({{"catalog_date", plan.catalog_date},
                             {"catalog_hash", plan.catalog_hash},
                             {"stack", plan.rules.stack.name},
                             {"steps", plan.request.steps},
                             {"parameters", plan.parameters},
                             {"offers", std::move(offers)}});
  document.set("chosen", choice.chosen ? estimated_node(plan, *choice.chosen) : Node());
  if (choice.chosen) document.set("quotas", beside.quotas);
  if (!plan.targets.empty()) {
    Node targets = Node::sequence();
    for (const TargetNote& note : plan.targets) targets.push(Node::map({{"name", note.target}, {"words", note.words}}));
    document.set("targets", std::move(targets));
  }
  document.set("lost", std::move(lost));
  document.set("front", std::move(front));
  document.set("other_sizes", std::move(sizes));
  Node sensitive = Node::sequence();
  for (const Sensitivity& one : plan.sensitivities)
    sensitive.push(Node::map({{"but", one.what},
                              {"step_seconds", one.step.count()},
                              {"total_seconds", one.total.count()},
                              {"dollars", maybe(one.dollars)},
                              {"memory_bytes", one.memory.count()},
                              {"fits", one.fits}}));
  document.set("same_layout_but", std::move(sensitive));
  document.set("this_machine", beside.this_machine);
  document.set("feed_of_choice", beside.feed);
  document.set("counts", counts_node(choice.counts));
  document.set("search_seconds", plan.searched.count());
  return document;
}

}  // namespace systole
