#include "predict/plan/hardware_plan.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

#include "describe/models/list.h"
#include "describe/spec/state_bytes.h"
#include "ground/base/counted.h"
#include "ground/base/number_from.h"
#include "ground/base/shell_quoted.h"
#include "predict/plan/layout_edit.h"
#include "predict/plan/mean_step.h"
#include "predict/plan/share_words.h"

namespace systole {
namespace {

// Steps of the whole training run; nothing: train.time ends it.
std::optional<double> steps_of(const HardwarePlan& plan) {
  const TrainSpec& train = plan.workload.train;
  if (train.steps) return static_cast<double>(*train.steps);
  if (train.tokens) return static_cast<double>(*train.tokens) / tokens_a_step(plan);
  return std::nullopt;
}

// Of devices and their cheapest storage, an hour. Nothing: unknown.
std::optional<DollarsPerHour> least_price(const ClusterOffer& offer) {
  const std::vector<OfferedStorage>& storages = offer.offered.storages;
  if (!offer.offered.price || storages.empty()) return offer.offered.price;
  return *offer.offered.price + std::ranges::min(storages, {}, &OfferedStorage::price).price;
}

// Leaves out the storages that with the devices cost more than the budget in this time.
void keep_storages(Dollars budget, Seconds time, HardwareOption& offered) {
  if (!offered.price) return;
  std::erase_if(offered.storages,
                [&](const OfferedStorage& one) { return (*offered.price + one.price) * time > budget; });
}

// If train.time ends training, every offer is paid for the same time: either all meet the deadline or none does, and
// the budget excludes some.
Status keep_limits(const std::string& path, Seconds time, HardwarePlan& plan) {
  ChoiceRequest& asked = plan.request;
  if (asked.deadline && *asked.deadline < time) {
    return error(ErrorKind::invalid,
                 "train.time and --deadline contradict each other: training goes on for {}, and is "
                 "to end within {}",
                 to_string(time), to_string(*asked.deadline))
        .at({path})
        .hinted(
            fmt::format("--deadline {}, or --set train.time={:.0f}s", deadline_words(time), asked.deadline->count()));
  }
  asked.deadline.reset();
  if (!asked.budget) return {};
  std::map<std::string, std::optional<Dollars>> least;  // by accelerator, of those over budget
  std::erase_if(asked.offers, [&](ClusterOffer& offer) {
    const std::optional<DollarsPerHour> price = least_price(offer);
    keep_storages(*asked.budget, time, offer.offered);
    if (price && *price * time <= *asked.budget) return false;
    std::optional<Dollars>& of_accelerator = least[offer.accelerator];
    if (price && (!of_accelerator || *price * time < *of_accelerator)) of_accelerator = *price * time;
    return true;
  });
  for (const ClusterOffer& offer : asked.offers) least.erase(offer.accelerator);
  std::optional<Dollars> least_of_all;
  for (const auto& [accelerator, dollars] : least) {
    if (dollars && (!least_of_all || *dollars < *least_of_all)) least_of_all = dollars;
    plan.left_out.emplace_back(
        accelerator,
        dollars ? fmt::format("{} costs at least {}", to_string(time), to_string(*dollars)) : "its price is unknown");
  }
  if (asked.offers.empty()) {
    return error(ErrorKind::does_not_fit,
                 "train.time and --budget contradict each other: {} of what is offered costs at "
                 "least {}",
                 to_string(time), to_string(least_of_all.value()))
        .at({path})
        .hinted(fmt::format("--budget {}", budget_words(*least_of_all)));
  }
  asked.budget.reset();
  return {};
}

// The steps that the best option does in the given time. All options are compared at this number.
double steps_in(Seconds time, const Composer& composer, const ChoiceRequest& request) {
  ChoiceRequest one = request;
  one.steps = 1;
  one.best = 1;
  const std::optional<Estimated> best = best_of_all(composer, one);
  return best ? std::max(1.0, std::floor(time.count() / best->total.count())) : 1;
}

// Errors: invalid: a price is needed, and no offer has one.
Status check_prices(const ChoiceRequest& asked) {
  const auto priced = [](const ClusterOffer& offer) { return offer.offered.price.has_value(); };
  if (!(asked.budget || by_dollars(asked.wanted)) || asked.offers.empty() || std::ranges::any_of(asked.offers, priced))
    return {};
  return error(ErrorKind::invalid, "{} needs a price, and nobody knows one of what --on names: {}",
               asked.budget ? "--budget" : "--objective in dollars", asked.offers.front().price.note)
      .hinted(fmt::format("leave {} out; or give prices of your own: systole catalog prices --help",
                          asked.budget ? "--budget" : "--objective"));
}

// The error for a deadline and a budget that can each be met, but not both.
std::optional<Error> contradicting_limits(const HardwarePlan& plan) {
  const ChoiceRequest& asked = plan.request;
  if (!asked.budget || !asked.deadline) return std::nullopt;
  const Estimated *in_time = nullptr, *in_budget = nullptr;  // the cheapest in time, the fastest in budget
  for (const LostOption& lost : plan.choice.lost) {
    if (lost.refused || !lost.estimated || !lost.estimated->dollars) continue;
    const Estimated& e = *lost.estimated;
    if (e.total <= *asked.deadline && (in_time == nullptr || *e.dollars < *in_time->dollars)) in_time = &e;
    if (*e.dollars <= *asked.budget && (in_budget == nullptr || e.total < in_budget->total)) in_budget = &e;
  }
  if (in_time == nullptr || in_budget == nullptr) return std::nullopt;
  return error(ErrorKind::does_not_fit,
               "--deadline and --budget contradict each other: in time, the cheapest is {} for {}; within the budget, "
               "the fastest is {} in {}",
               asked.offers[in_time->offer].offered.name, to_string(*in_time->dollars),
               asked.offers[in_budget->offer].offered.name, to_string(in_budget->total))
      .hinted(fmt::format("--budget {}, or --deadline {}", budget_words(*in_time->dollars),
                          deadline_words(in_budget->total)));
}

// Lists them behind all that were searched, which do not see them.
void add_barred(std::vector<BarredOffer> barred, HardwarePlan& plan) {
  for (BarredOffer& one : barred) {
    plan.choice.lost.push_back({.offer = plan.request.offers.size(),
                                .estimated = {},
                                .reason = std::move(one.why.message),
                                .edit = std::move(one.why.hint)});
    plan.request.offers.push_back(std::move(one.offer));
  }
}

// Sets the storages of all offers. Errors: those of OfferStorages; invalid: a budget, and a price that nobody knows.
Status add_storages(const OfferedPlanRequest& request, CatalogTables& tables, std::optional<OfferStorages>& storages,
                    HardwarePlan& plan) {
  if (!request.storage) return {};
  storages.emplace(TRY(OfferStorages::of(request.workload, *request.storage, tables)));
  if (plan.request.budget && !storages->unpriced().empty())
    return key_error(ErrorKind::invalid, "volumes", "{}: {}, and a budget is to hold", *storages->mount(),
                     storages->unpriced())
        .hinted("{ cheapest: true }, or filestore: zonal with a size; or no --budget");
  plan.request.add_storages = [&storages](ClusterOffer& offer) { storages->add(offer); };
  if (storages->mount() != nullptr) plan.mount = *storages->mount();
  for (ClusterOffer& offer : plan.request.offers) storages->add(offer);
  if (!storages->open()) return {};
  std::erase_if(plan.request.offers, [&](const ClusterOffer& offer) {
    if (!offer.offered.storages.empty()) return false;
    plan.left_out.emplace_back(offer.offered.name, fmt::format("no storage of known price and speed holds {} for {}",
                                                               to_string(storages->needed()), plan.mount));
    return true;
  });
  if (plan.request.offers.empty())
    return key_error(ErrorKind::does_not_fit, "volumes", "{}: no storage of known price and speed holds {}", plan.mount,
                     to_string(storages->needed()))
        .hinted("a volume that is there already: bucket, lustre, nfs or a claim");
  return {};
}

// An open volume becomes that of the choice.
void take_storage(HardwarePlan& plan) {
  const Estimated& chosen = *plan.choice.chosen;
  const std::vector<OfferedStorage>& storages = plan.request.offers[chosen.offer].offered.storages;
  if (!storages.empty()) plan.workload.volumes[plan.mount] = storages[chosen.storage].volume;
}

}  // namespace

Result<HardwarePlan> plan_offered(OfferedPlanRequest request, CatalogTables& tables, const Catalog& catalog,
                                  const PlanMessages& messages, Clock& clock) {
  HardwarePlan plan;
  plan.workload = request.workload;
  plan.request = std::move(request.choice);
  plan.rules = std::move(request.rules);
  ClusterOffers offers = TRY(planned_offers(tables, catalog, request.targets, plan.rules));
  plan.request.offers = std::move(offers.offers);
  plan.left_out = std::move(offers.left_out);
  std::vector<BarredOffer> barred = TRY(bar_offers(plan.workload, request.run_by, plan.request.offers));
  TRY(check_prices(plan.request));
  if (request.proved > 0) TRY(LayoutProver::check(plan.request.offers, catalog));
  plan.catalog_date = catalog.date();
  plan.catalog_hash = catalog.hash();
  plan.today = request.today;
  const auto begin = std::chrono::steady_clock::now();
  messages.progress(counted(plan.request.offers.size(), "offer"));
  plan.shapes = std::move(request.shapes);
  const Composer composer(plan.workload, target_of_accelerators(), plan.request.threads, plan.shapes);
  plan.parameters = num_parameters(composer.model());
  plan.trainable = num_trainable(composer.model());
  plan.sequence_length = composer.model().context();
  const std::optional<double> steps = steps_of(plan);
  std::optional<OfferStorages> storages;
  if (request.storage) {
    request.storage->checkpoint = state_bytes(plan.parameters, plan.trainable, plan.workload.train);
    request.storage->shapes = plan.shapes;
    request.storage->rows = steps.value_or(0) * (plan.shapes.empty() ? static_cast<double>(plan.workload.train.batch)
                                                                     : mean_rows(plan.shapes));
  }
  TRY(add_storages(request, tables, storages, plan));
  if (!steps) TRY(keep_limits(request.path, *plan.workload.train.time, plan));
  plan.request.steps = steps ? *steps : steps_in(*plan.workload.train.time, composer, plan.request);
  std::optional<LayoutProver> prover;
  if (request.proved > 0) {
    prover.emplace(plan.workload, plan.shapes, plan.request.offers, catalog, messages, clock);
    plan.request.judged = request.proved;
    plan.request.judge = [&prover](const Estimated& e) { return prover->judge(e); };
  }
  plan.choice = choose(composer, plan.request);
  plan.request.judge = nullptr;
  if (plan.choice.chosen) take_storage(plan);
  if (prover) plan.proved = prover->take();
  plan.searched = Seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  const SizeSearch sizes{tables, catalog, plan.rules, composer, plan.request};
  if (plan.choice.chosen) {
    plan.sizes = other_sizes(sizes, plan.request.offers[plan.choice.chosen->offer]);
    plan.sensitivities = sensitivities({tables, catalog, plan.rules, composer, plan.request}, *plan.choice.chosen);
  } else if (!plan.choice.lost.empty() && !contradicting_limits(plan)) {
    plan.larger = size_that_meets(sizes, plan.request.offers[plan.choice.lost.front().offer]);
  }
  plan.this_machine = offers.this_machine;
  if (plan.choice.chosen)
    plan.targets = target_notes(plan.workload, request.run_by, plan.request.offers[plan.choice.chosen->offer]);
  add_barred(std::move(barred), plan);
  plan.request.add_storages = nullptr;
  return plan;
}

Error refusal_of(const HardwarePlan& plan) {
  if (std::optional<Error> two = contradicting_limits(plan)) return *std::move(two);
  const LostOption& nearest = plan.choice.lost.front();
  Error refused = error(ErrorKind::does_not_fit, "nothing that is offered will do; the nearest is {}: {}",
                        plan.request.offers[nearest.offer].offered.name, nearest.reason);
  if (plan.larger) refused.hint = fmt::format("--on {} does", plan.larger->offer.target);
  if (!nearest.edit.empty()) refused.hint += (refused.hint.empty() ? "" : "; or ") + nearest.edit;
  if (refused.hint.empty()) refused.hint = "--on other accelerators; systole catalog accelerators lists them";
  return refused;
}

Status check_runs_as_planned(const HardwarePlan& plan) {
  const ProductType type = plan.request.offers[plan.choice.chosen->offer].offered.kernels.products;
  if (type == ProductType::bf16 || type == ProductType::f32) return {};
  return error(ErrorKind::unsupported,
               "the choice does products in {}, which no key of the workload asks for: run --plan would do them in {}",
               name_of(type), in_32_bits(type) ? "f32" : "bf16")
      .hinted(fmt::format("--precision {}; or leave --out out", in_32_bits(type) ? "f32" : "bf16"));
}

const ProvedLayout* proof_of_layout(const HardwarePlan& plan, const Estimated& estimated) {
  for (const ProvedLayout& one : plan.proved)
    if (one.offer == estimated.offer && one.candidate == estimated.candidate) return &one;
  return nullptr;
}

Result<const LostOption*> lost_option(const HardwarePlan& plan, const std::string& words) {
  const std::vector<LostOption>& all = plan.choice.lost;
  const LostOption* found = nullptr;
  if (const std::optional<std::size_t> number = number_from<std::size_t>(words)) {
    if (*number >= 1 && *number <= all.size()) found = &all[*number - 1];
  } else {
    for (const LostOption& one : all)
      if (found == nullptr &&
          (option_name(plan, one).find(words) != std::string::npos || plan.request.offers[one.offer].target == words))
        found = &one;
  }
  if (found == nullptr)
    return error(ErrorKind::not_found, "--explain: no option that lost is '{}'", words)
        .hinted(all.empty() ? "nothing lost: there is one option"
                            : fmt::format("1 to {}, as the plan without --explain numbers them", all.size()));
  if (!plan.choice.chosen || !found->estimated)
    return error(ErrorKind::invalid, "--explain {}: {}", words,
                 found->estimated ? "nothing was chosen to hold it against" : "it has no step: " + found->reason)
        .hinted("another option, or the plan without --explain");
  return found;
}

std::vector<PlannedShape> shapes_of(const HardwarePlan& plan, const Estimated& estimated) {
  std::vector<PlannedShape> shapes = plan.shapes;
  for (std::size_t s = 0; s < shapes.size(); ++s) shapes[s].step = estimated.lengths[s];
  return shapes;
}

double tokens_a_step(const HardwarePlan& plan) {
  if (!plan.shapes.empty()) return mean_tokens(plan.shapes);
  return static_cast<double>(plan.workload.train.batch * std::max<std::int64_t>(1, plan.sequence_length));
}

std::string option_name(const HardwarePlan& plan, const LostOption& lost) {
  const std::string& offer = plan.request.offers[lost.offer].offered.name;
  if (lost.refused && plan.request.offers.size() > 1)
    return fmt::format("{}, {}", offer, to_string(lost.estimated->candidate));
  return lost.layout || lost.refused ? to_string(lost.estimated->candidate) : offer;
}

std::string set_words(const HardwarePlan& plan, const Candidate& candidate) {
  std::string words;
  for (const std::string& set : layout_sets(plan.workload, workload_of(plan.workload, candidate)))
    words += (words.empty() ? "--set " : " --set ") + shell_word(set);
  return words;
}

std::string edit_words(const HardwarePlan& plan, const LostOption& lost) {
  return lost.layout ? set_words(plan, lost.estimated->candidate) : lost.edit;
}

std::optional<std::string> exposed_warning(const HardwarePlan& plan) {
  if (!plan.choice.chosen) return std::nullopt;
  const StepTime& step = plan.choice.chosen->step;
  const double share = exposed_share(step);
  if (share <= kMuchExposed) return std::nullopt;
  std::vector<StepShare> kinds(std::begin(kExposedShares), std::end(kExposedShares));
  std::ranges::stable_sort(kinds, std::greater(), [&](StepShare kind) { return step[kind]; });
  std::string by_axis;
  for (const StepShare kind : kinds) {
    if (step[kind] < 0.005 * step.seconds) continue;
    std::string_view words = words_of(kind);
    words.remove_prefix(std::string_view("exposed: ").size());
    by_axis += fmt::format("{}{} {:.0f}%", by_axis.empty() ? "" : ", ", words, 100 * step[kind] / step.seconds);
  }
  return fmt::format(
      "{:.0f}% of the step ({} of {}) waits for messages: {}; above {:.0f}% fewer chips or faster links pay",
      100 * share, to_string(Seconds(share * step.seconds)), to_string(Seconds(step.seconds)), by_axis,
      100 * kMuchExposed);
}

}  // namespace systole
