#include "predict/plan/target_fit.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "ground/base/errors.h"

namespace systole {
namespace {

TargetUse use_of(const Workload& workload, const ClusterOffer& offer, const std::string& hardware = "") {
  return {.workload = workload, .nodes = offer.machines, .tpus = offer.slice.has_value(), .hardware = hardware};
}

bool runs(const JobTargetRow* target, const TargetUse& use) { return lacking(*target, use).empty(); }

std::string words_of(const JobTargetRow& target, const TargetUse& use) {
  std::vector<std::string> words;
  const auto add = [&](const char* what, const JobTargetAbility& ability) {
    if (*ability.how != '\0') words.push_back(std::string(what) + ability.how);
  };
  add(target.provisions ? "it makes " : "", target.provisions);
  if (use.nodes > 1) add("its nodes start together ", target.gang);
  if (asks_terms(use.workload)) add("a run that is preempted begins again, ", target.restarts);
  return fmt::format("{}", fmt::join(words, "; "));
}

}  // namespace

Result<std::vector<BarredOffer>> bar_offers(const Workload& workload, std::span<const JobTargetRow* const> targets,
                                            std::vector<ClusterOffer>& offers) {
  std::vector<BarredOffer> barred;
  if (targets.empty() || offers.empty()) return barred;
  const ClusterOffer first = offers.front();
  std::erase_if(offers, [&](const ClusterOffer& offer) {
    const TargetUse use = use_of(workload, offer);
    if (std::ranges::any_of(targets, [&](const JobTargetRow* target) { return runs(target, use); })) return false;
    const auto same = [&](const BarredOffer& other) { return other.offer.accelerator == offer.accelerator; };
    if (std::ranges::none_of(barred, same)) barred.push_back({offer, lacking(*targets.front(), use).front()});
    return true;
  });
  if (!offers.empty()) return barred;
  std::vector<Error> all = lacking(*targets.front(), use_of(workload, first, first.target));
  for (Error& one : all) one.message += fmt::format(" (--on {})", targets.front()->name);
  return together(std::move(all));
}

std::vector<TargetNote> target_notes(const Workload& workload, std::span<const JobTargetRow* const> targets,
                                     const ClusterOffer& offer) {
  std::vector<TargetNote> notes;
  const TargetUse use = use_of(workload, offer);
  for (const JobTargetRow* target : targets)
    if (runs(target, use)) notes.push_back({target->name, words_of(*target, use)});
  return notes;
}

}  // namespace systole
