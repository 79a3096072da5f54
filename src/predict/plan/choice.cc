#include "predict/plan/choice.h"
#include "ground/base/counted.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "predict/plan/estimated.h"

namespace systole {
namespace {

std::string percent(double ratio, const char* more, const char* less) {
  const double by = 100 * (ratio - 1);
  if (std::abs(by) < 0.05) return "";
  return fmt::format("{:.{}f}% {}", std::abs(by), std::abs(by) < 9.95 ? 1 : 0, by > 0 ? more : less);
}

std::string joined(std::string a, const std::string& b) {
  if (!a.empty() && !b.empty()) a += ", ";
  return a + b;
}

// By how much `least` exceeds the usable memory of a device.
std::string memory_reason(const ClusterOffer& offer, Bytes least) {
  const Bytes capacity = offer.offered.cluster.chip.capacity;
  const Bytes usable(static_cast<std::int64_t>(static_cast<double>(capacity.count()) * kUsableMemory));
  return fmt::format("out of memory by {} at the least ({} of the {} that may be planned of {})",
                     to_string(least - usable), to_string(least), to_string(usable), to_string(capacity));
}

class Chooser {
 public:
  Chooser(const Composer& composer, const ChoiceRequest& request) : composer_(composer), request_(request) {}
  OfferChoice run();
  std::optional<Estimated> best() const;

 private:
  bool by_dollars() const { return systole::by_dollars(request_.wanted); }
  SearchRequest searched() const;
  void judge(std::vector<Estimated>& best);
  bool refused(std::size_t offer, const Candidate& candidate) const {
    return std::ranges::any_of(
        refused_, [&](const LostOption& l) { return l.offer == offer && l.estimated->candidate == candidate; });
  }
  double score(const Estimated& e) const {
    if (!by_dollars()) return e.total.count();
    return e.dollars ? e.dollars->count() : std::numeric_limits<double>::infinity();
  }
  bool one_by_one() const { return request_.offers.size() <= request_.alone; }
  void look_at_others(const SearchResult& found);
  void look_at(std::size_t offer);
  void look_at_each();
  void look_at_accelerators();
  void look_at_nearest(const std::vector<std::size_t>& offers);
  void find_front();
  void add_offers();
  void add_layouts(const std::vector<Estimated>& best);
  void add_without_pipeline();
  std::string limits_missed(const Estimated& e, std::string& edit) const;
  LostOption lost_offer(const Estimated& e) const;
  LostOption lost_layout(const Estimated& e) const;
  std::string compared(const Estimated& e) const;
  std::string alone(std::size_t offer) const;
  bool on_front(std::size_t offer) const {
    return std::ranges::any_of(choice_.front, [&](const Estimated& e) { return e.offer == offer; });
  }

  const Composer& composer_;
  const ChoiceRequest& request_;
  std::map<std::size_t, Estimated> best_of_;  // by offer
  std::map<std::size_t, AloneResult> unfit_;  // offers without a layout that fits
  std::vector<LostOption> refused_;
  OfferChoice choice_;
};

SearchRequest Chooser::searched() const {
  SearchRequest search;
  std::map<std::string, std::size_t> accelerators;
  for (const ClusterOffer& offer : request_.offers) {
    search.offered.push_back(offer.offered);
    search.offered.back().group = accelerators.try_emplace(offer.accelerator, accelerators.size()).first->second;
  }
  search.objective = by_dollars() ? PlanObjective::cheapest : PlanObjective::fastest;
  search.steps = request_.steps;
  search.deadline = request_.deadline;
  search.budget = request_.budget;
  search.best = std::max({std::size_t{1}, request_.best, request_.judged});
  search.of_groups = !one_by_one();
  search.exhaustive = request_.exhaustive;
  search.threads = request_.threads;
  return search;
}

OfferChoice Chooser::run() {
  SearchResult found = search(composer_, searched());
  choice_.counts = found.counts;
  judge(found.best);
  if (!found.best.empty()) choice_.chosen = found.best.front();
  look_at_others(found);
  find_front();
  add_offers();
  if (choice_.chosen) add_layouts(found.best);
  if (choice_.chosen) add_without_pipeline();
  return std::move(choice_);
}

std::optional<Estimated> Chooser::best() const {
  SearchRequest one = searched();
  one.best = 1;
  one.of_groups = false;
  SearchResult found = search(composer_, one);
  if (found.best.empty()) return std::nullopt;
  return std::move(found.best.front());
}

// Removes the layouts that the judge refuses.
void Chooser::judge(std::vector<Estimated>& best) {
  if (!request_.judge) return;
  std::vector<Estimated> passed;
  std::size_t asked = 0;
  for (Estimated& e : best) {
    const bool ask = asked < request_.judged || passed.empty();
    std::optional<std::string> why;
    if (ask) why = request_.judge(e);
    asked += ask ? 1 : 0;
    if (why)
      refused_.push_back({.offer = e.offer, .estimated = std::move(e), .reason = *why, .edit = {}, .refused = true});
    else
      passed.push_back(std::move(e));
  }
  best = std::move(passed);
}

void Chooser::look_at_others(const SearchResult& found) {
  for (const std::vector<Estimated>* some : {&found.best, &found.others})
    for (const Estimated& one : *some) best_of_.try_emplace(one.offer, one);
  one_by_one() ? look_at_each() : look_at_accelerators();
}

// Searches one offer by itself, regardless of deadline and budget.
void Chooser::look_at(std::size_t o) {
  if (best_of_.contains(o)) return;
  AloneResult alone = search_alone(composer_, request_, request_.offers[o]);
  if (!alone.best) {
    unfit_.emplace(o, alone);
    return;
  }
  if (refused(o, alone.best->candidate)) return;
  alone.best->offer = o;
  best_of_.emplace(o, *alone.best);
}

void Chooser::look_at_each() {
  for (std::size_t o = 0; o < request_.offers.size(); ++o) look_at(o);
}

void Chooser::look_at_accelerators() {
  std::map<std::size_t, std::vector<std::size_t>> groups;
  const SearchRequest search = searched();
  for (std::size_t o = 0; o < search.offered.size(); ++o) groups[search.offered[o].group].push_back(o);
  for (const auto& [group, offers] : groups) {
    if (std::ranges::none_of(offers, [&](std::size_t o) { return best_of_.contains(o); })) look_at_nearest(offers);
  }
  choice_.not_looked_at = request_.offers.size() - best_of_.size() - unfit_.size();
}

// Among offers without an answer, estimates the one that comes nearest to fitting in memory, or else to the deadline, a
// price, or the budget.
void Chooser::look_at_nearest(const std::vector<std::size_t>& offers) {
  SearchRequest nearest = searched();
  std::vector<HardwareOption> all = std::move(nearest.offered);
  nearest.offered.clear();
  for (const std::size_t o : offers) {
    nearest.offered.push_back(std::move(all[o]));
    nearest.offered.back().group = 0;
  }
  const bool priced =
      std::ranges::any_of(nearest.offered, [](const HardwareOption& offer) { return offer.price.has_value(); });
  nearest.objective = request_.deadline || !priced ? PlanObjective::fastest : nearest.objective;
  if (request_.budget && !request_.deadline && priced) nearest.objective = PlanObjective::cheapest;
  nearest.deadline.reset();
  nearest.budget.reset();
  nearest.best = 1;
  nearest.of_groups = false;
  nearest.staged_stacks = false;
  SearchResult found = systole::search(composer_, nearest);
  if (!found.best.empty()) {
    Estimated& best = found.best.front();
    best.offer = offers[best.offer];
    if (refused(best.offer, best.candidate)) return;
    best_of_.emplace(best.offer, std::move(best));
    return;
  }
  AloneResult unfit;
  std::size_t offer = offers.front();
  if (const auto least = found.least_memory.find(0); least != found.least_memory.end()) {
    unfit.least_memory = least->second.bytes;
    offer = offers[least->second.offer];
  }
  unfit_.emplace(offer, unfit);
}

void Chooser::find_front() {
  for (const auto& [offer, one] : best_of_) {
    if (!one.dollars) continue;
    const Estimated& e = one;
    const bool beaten = std::ranges::any_of(best_of_, [&](const auto& entry) {
      const Estimated& other = entry.second;
      return other.dollars && other.total <= e.total && *other.dollars <= *e.dollars &&
             (other.total < e.total || *other.dollars < *e.dollars);
    });
    if (!beaten) choice_.front.push_back(one);
  }
  std::ranges::sort(choice_.front, {}, [](const Estimated& e) { return e.total; });
}

void Chooser::add_offers() {
  std::vector<LostOption> meets, misses;
  for (const auto& [offer, one] : best_of_) {
    if (choice_.chosen && choice_.chosen->offer == offer) continue;
    std::string edit;
    (limits_missed(one, edit).empty() ? meets : misses).push_back(lost_offer(one));
  }
  for (std::vector<LostOption>* options : {&meets, &misses}) {
    std::ranges::stable_sort(*options, {}, [&](const LostOption& l) { return score(*l.estimated); });
    std::ranges::move(*options, std::back_inserter(choice_.lost));
  }
  choice_.lost.insert(choice_.lost.end(), refused_.begin(), refused_.end());
  for (const auto& [offer, alone] : unfit_) {
    LostOption lost{.offer = offer, .estimated = {}, .reason = {}, .edit = {}};
    lost.reason = alone.least_memory ? memory_reason(request_.offers[offer], *alone.least_memory)
                                     : fmt::format("no layout of {} cuts {} and this model evenly",
                                                   counted(request_.offers[offer].offered.cluster.devices, "device"),
                                                   counted(composer_.asked().train.batch, "row"));
    choice_.lost.push_back(std::move(lost));
  }
}

void Chooser::add_layouts(const std::vector<Estimated>& best) {
  for (const Estimated& one : best)
    if (one.offer == choice_.chosen->offer && one.candidate != choice_.chosen->candidate)
      choice_.lost.push_back(lost_layout(one));
}

// Some software runs Programs but no pipelines, so the offer's best layout without one is listed beside the choice.
void Chooser::add_without_pipeline() {
  const auto is_other = [&](const LostOption& lost) {
    return lost.layout && lost.offer == choice_.chosen->offer && !lost.estimated->candidate.staged();
  };
  if (!choice_.chosen->candidate.staged() || std::ranges::any_of(choice_.lost, is_other)) return;
  AloneResult alone = search_alone(composer_, request_, request_.offers[choice_.chosen->offer], false);
  if (!alone.best) return;
  alone.best->offer = choice_.chosen->offer;
  choice_.lost.push_back(lost_layout(*alone.best));
}

// The limits that it misses; empty: none. `edit`: the options that would let it pass.
std::string Chooser::limits_missed(const Estimated& e, std::string& edit) const {
  std::string missed;
  const auto add = [&](const std::string& why, const std::string& with) {
    missed = joined(missed, why);
    edit += (edit.empty() ? "" : " ") + with;
  };
  if (request_.deadline && e.total > *request_.deadline)
    add(fmt::format("deadline missed by {}", to_string(e.total - *request_.deadline)),
        "--deadline " + deadline_words(e.total));
  const bool needs_price = by_dollars() || request_.budget.has_value();
  if (needs_price && !e.dollars) {
    const std::string& note = request_.offers[e.offer].price.note;
    add("its price is unknown" + (note.empty() ? "" : ": " + note),
        fmt::format("a price of it in a catalog of your own (systole catalog prices --help){}",
                    by_dollars() ? "" : ", or no --budget"));
  }
  if (request_.budget && e.dollars && *e.dollars > *request_.budget)
    add(fmt::format("over budget by {}", to_string(*e.dollars - *request_.budget)),
        "--budget " + budget_words(*e.dollars));
  return missed;
}

std::string Chooser::compared(const Estimated& e) const {
  if (!choice_.chosen) return "";
  std::string text = percent(e.total / choice_.chosen->total, "slower", "faster");
  if (!e.dollars && !by_dollars() && !request_.budget) text = joined(text, "no price known");
  if (e.dollars && choice_.chosen->dollars && *choice_.chosen->dollars > Dollars())
    text = joined(text, percent(*e.dollars / *choice_.chosen->dollars, "dearer", "cheaper"));
  return text.empty() ? "as good; the first stands" : text;
}

// The value of --on that selects this offer only.
std::string Chooser::alone(std::size_t offer) const {
  const ClusterOffer& one = request_.offers[offer];
  const auto twin = [&](const ClusterOffer& other) {
    return other.target == one.target && other.offered.kernels.products != one.offered.kernels.products;
  };
  return one.target + (std::ranges::any_of(request_.offers, twin)
                           ? fmt::format(" --precision {}", name_of(one.offered.kernels.products))
                           : "");
}

LostOption Chooser::lost_offer(const Estimated& e) const {
  LostOption lost{.offer = e.offer, .estimated = e, .reason = {}, .edit = {}};
  const std::string missed = limits_missed(e, lost.edit);
  lost.reason = joined(missed, compared(e));
  if (!missed.empty() || !choice_.chosen) return lost;
  // If all offers were searched, an option on the front is the best at its cost or its time. Otherwise one that was not
  // searched may be better.
  const bool first = one_by_one() && on_front(e.offer);
  if (first && by_dollars() && e.total < choice_.chosen->total)
    lost.edit = "--deadline " + deadline_words(e.total);
  else if (first && !by_dollars() && e.dollars && choice_.chosen->dollars)
    lost.edit = e.offer == choice_.front.back().offer ? "--objective cheapest" : "--budget " + budget_words(*e.dollars);
  else
    lost.edit = "--on " + alone(e.offer) + " alone";
  return lost;
}

LostOption Chooser::lost_layout(const Estimated& e) const {
  LostOption lost{.offer = e.offer, .estimated = e, .reason = compared(e), .edit = {}, .layout = true};
  if (e.memory.total() < choice_.chosen->memory.total())
    lost.reason += fmt::format(", {} less memory", to_string(choice_.chosen->memory.total() - e.memory.total()));
  return lost;
}

}  // namespace

StorageWish wish_of(const ChoiceRequest& request) {
  return {by_dollars(request.wanted), request.steps, request.deadline, request.budget};
}

OfferChoice choose(const Composer& composer, const ChoiceRequest& request) { return Chooser(composer, request).run(); }

std::optional<Estimated> best_of_all(const Composer& composer, const ChoiceRequest& request) {
  return Chooser(composer, request).best();
}

AloneResult search_alone(const Composer& composer, const ChoiceRequest& request, const ClusterOffer& offer,
                         bool pipelines) {
  SearchRequest alone;
  alone.pipelines = pipelines;
  alone.offered = {offer.offered};
  alone.steps = request.steps;
  alone.best = 1;
  alone.threads = request.threads;
  alone.staged_stacks = false;
  SearchResult found = search(composer, alone);
  AloneResult result;
  result.candidates = found.counts.candidates;
  if (const auto least = found.least_memory.find(0); least != found.least_memory.end())
    result.least_memory = least->second.bytes;
  if (!found.best.empty()) {  // the fastest layout is also the cheapest, though with another storage
    result.best = std::move(found.best.front());
    set_storage(*result.best, offer.offered, wish_of(request));
  }
  return result;
}

std::string deadline_words(Seconds seconds) {
  const double s = seconds.count();
  if (s < 3600) return fmt::format("{:.0f}s", std::ceil(s));
  const auto hours = static_cast<std::int64_t>(std::ceil(s / 3600));
  if (hours < 100) return fmt::format("{}h", hours);
  return hours % 24 == 0 ? fmt::format("{}d", hours / 24) : fmt::format("{}d{}h", hours / 24, hours % 24);
}

std::string budget_words(Dollars dollars) {
  if (dollars < Dollars(100)) return fmt::format("{:.2f}", std::ceil(dollars.count() * 100) / 100);
  return fmt::format("{:.0f}", std::ceil(dollars.count()));
}

double exposed_share(const StepTime& step) {
  double exposed = 0;
  for (const StepShare share : kExposedShares) exposed += step[share];
  return step.seconds > 0 ? exposed / step.seconds : 0;
}

}  // namespace systole
