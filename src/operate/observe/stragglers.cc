#include "operate/observe/stragglers.h"

#include <algorithm>
#include <map>

namespace systole {
namespace {

Seconds middle_of(std::vector<Seconds> times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>((times.size() - 1) / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

// Stages of every step. Other stages may take long on one rank only.
bool is_judged(RankStage stage) {
  switch (stage) {
    case RankStage::data_wait:
    case RankStage::forward:
    case RankStage::backward:
    case RankStage::reduce:
    case RankStage::update:
    case RankStage::transfer:
    case RankStage::logging:
    case RankStage::other: return true;
    default: return false;
  }
}

std::vector<const Flight*> by_rank(const std::vector<Flight>& flights) {
  std::vector<const Flight*> ranks;
  for (const Flight& flight : flights) ranks.push_back(&flight);
  std::sort(ranks.begin(), ranks.end(),
            [](const Flight* a, const Flight* b) { return a->identity.rank < b->identity.rank; });
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const FlightIdentity& it = ranks[r]->identity;
    const FlightIdentity& first = ranks[0]->identity;
    const bool one_of_all = it.rank == static_cast<std::int64_t>(r) && it.generation == first.generation &&
                            it.launch == first.launch && it.ranks == static_cast<std::int64_t>(ranks.size());
    if (!one_of_all) return {};
  }
  return ranks;
}

std::string collective_of(const Flight& flight) {
  return flight.now.site < 0 ? "" : flight.sites[static_cast<std::size_t>(flight.now.site)].name;
}

}  // namespace

const char* name_of(Straggler::Kind kind) {
  switch (kind) {
    case Straggler::Kind::slow: return "slow";
    case Straggler::Kind::stuck: return "stuck";
    case Straggler::Kind::lost_message: return "lost_message";
    case Straggler::Kind::mismatch: return "mismatch";
    case Straggler::Kind::flipped_bit: return "flipped_bit";
  }
  return "";
}

std::string to_string(const Straggler& h) {
  const std::string in = h.collective.empty() ? "" : " in " + h.collective;
  switch (h.kind) {
    case Straggler::Kind::slow:
      return fmt::format("rank {} is slow: {} of step {} took it {}, the others {}; they wait for it", h.rank,
                         name_of(h.stage), h.step, to_string(h.took), to_string(h.usual));
    case Straggler::Kind::stuck:
      return fmt::format("rank {} is stuck: {}{} of step {} for {}; the others wait for it{}", h.rank, doing(h.stage),
                         h.detail, h.step, to_string(h.took), in);
    case Straggler::Kind::lost_message:
      return fmt::format("a message from rank {} to rank {} is lost{}: nothing has moved in step {} for {}", h.rank,
                         h.peer, in, h.step, to_string(h.took));
    case Straggler::Kind::mismatch:
      return fmt::format("rank {} does not do what the others do: it is{} in step {}", h.rank, in, h.step);
    case Straggler::Kind::flipped_bit: return fmt::format("rank {} is not to be trusted: {}", h.rank, h.detail);
  }
  return "";
}

void StragglerWatch::begin(const std::vector<const Flight*>& ranks, Seconds now) {
  generation_ = ranks[0]->identity.generation;
  launch_ = ranks[0]->identity.launch;
  first_step_ = judged_ = 0;
  usual_ = Seconds();
  suspects_.clear();
  told_.clear();
  changed_at_ = now;
}

bool StragglerWatch::told(const Straggler& straggler) {
  return !told_.insert({static_cast<int>(straggler.kind), straggler.rank}).second;
}

std::vector<Straggler> StragglerWatch::look(const std::vector<Flight>& flights, Seconds now) {
  const std::vector<const Flight*> ranks = by_rank(flights);
  if (ranks.size() < 2) return {};
  if (ranks[0]->identity.generation != generation_ || ranks[0]->identity.launch != launch_) begin(ranks, now);
  std::uint64_t changes = 0;
  for (const Flight* rank : ranks) changes += rank->now.changes;
  // The observer was delayed itself, so it does not know how long nothing moved.
  if (changes != changes_ || now - looked_at_ > options_.still * 0.5) changed_at_ = now;
  changes_ = changes;
  looked_at_ = now;
  std::vector<Straggler> found;
  for (std::optional<Straggler> h : {slow(ranks), stuck(ranks, now)}) {
    if (h && !told(*h)) found.push_back(std::move(*h));
  }
  return found;
}

// Judges all steps that have ended on every rank since the last look.
std::optional<Straggler> StragglerWatch::slow(const std::vector<const Flight*>& ranks) {
  std::map<std::int64_t, std::vector<const FlightStep*>> steps;
  for (const Flight* rank : ranks) {
    for (const FlightStep& step : rank->recent) {
      if (step.step > judged_) steps[step.step].push_back(&step);
    }
  }
  std::optional<Straggler> found;
  for (const auto& [number, of_ranks] : steps) {
    if (of_ranks.size() < ranks.size()) continue;
    if (first_step_ == 0) first_step_ = number;
    judged_ = number;
    if (number < first_step_ + options_.warm_up) continue;
    if (std::optional<Straggler> h = judge(number, of_ranks)) found = std::move(h);
  }
  return found;
}

std::optional<Straggler> StragglerWatch::judge(std::int64_t step, const std::vector<const FlightStep*>& ranks) {
  Straggler worst;
  Seconds beyond, whole, short_of_cores;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    whole = std::max(whole, whole_time(ranks[r]->seconds));
    short_of_cores = std::max(short_of_cores, at(ranks[r]->seconds, RankStage::cores));
    for (int s = 0; s < kNumStages; ++s) {
      const auto stage = static_cast<RankStage>(s);
      if (!is_judged(stage)) continue;
      std::vector<Seconds> others, own;
      for (std::size_t o = 0; o < ranks.size(); ++o) {
        if (o == r) continue;
        others.push_back(at(ranks[o]->seconds, stage));
        own.push_back(own_time(ranks[o]->seconds));
      }
      const Seconds usual = middle_of(others), took = at(ranks[r]->seconds, stage);
      const Seconds limit = std::max(middle_of(own) * options_.share, options_.floor);
      if (took - usual - limit <= beyond) continue;
      beyond = took - usual - limit;
      worst = {Straggler::Kind::slow, static_cast<int>(r), stage, step, took, usual, "", -1};
    }
  }
  const bool suspect = worst.rank >= 0 && beyond > short_of_cores;
  suspects_.push_back(suspect ? Suspect{worst.rank, worst.stage} : Suspect{});
  if (suspects_.size() > 3) suspects_.pop_front();
  if (!suspect) usual_ = usual_ == Seconds() ? whole : usual_ * 0.8 + whole * 0.2;
  const auto times = std::count(suspects_.begin(), suspects_.end(), Suspect{worst.rank, worst.stage});
  return suspect && times >= 2 ? std::optional(worst) : std::nullopt;
}

std::optional<Straggler> StragglerWatch::stuck(const std::vector<const Flight*>& ranks, Seconds now) {
  const Seconds still = now - changed_at_;
  const bool warm = std::all_of(ranks.begin(), ranks.end(), [](const Flight* r) { return r->steps >= 2; });
  if (!warm || still < std::max(options_.still, usual_ * options_.steps)) return std::nullopt;
  const auto waits = [&](std::size_t r) { return ranks[r]->now.awaited >= 0; };
  std::size_t at_rank = 0;
  while (at_rank < ranks.size() && !waits(at_rank)) ++at_rank;
  if (at_rank == ranks.size()) return std::nullopt;  // no rank waits for another
  const std::string collective = collective_of(*ranks[at_rank]);
  const auto stopped = [&](std::size_t r) { return options_.is_stopped && options_.is_stopped(ranks[r]->identity); };
  const auto stuck_at = [&](std::size_t r, const char* detail) {
    const FlightNow& there = ranks[r]->now;
    return Straggler{
        Straggler::Kind::stuck, static_cast<int>(r), there.stage, there.step, still, {}, collective, -1, detail};
  };
  for (std::size_t links = 0; links <= ranks.size(); ++links) {
    const FlightNow& here = ranks[at_rank]->now;
    const auto next = static_cast<std::size_t>(here.awaited);
    if (next >= ranks.size()) return std::nullopt;
    const FlightNow& there = ranks[next]->now;
    if (!waits(next)) {
      const bool judged = is_judged(there.stage);
      if (!judged && still < options_.still_at_rest) return std::nullopt;
      return stuck_at(next, "");
    }
    if (stopped(next)) return stuck_at(next, ", its process stopped,");
    if (there.position > here.position && !here.to_send) {
      if (stopped(at_rank)) return stuck_at(at_rank, ", its process stopped,");
      return Straggler{
          Straggler::Kind::lost_message,  static_cast<int>(next),   RankStage::transfer, here.step, still, {},
          collective_of(*ranks[at_rank]), static_cast<int>(at_rank)};
    }
    at_rank = next;
  }
  return std::nullopt;
}

namespace {

// The rank in a different collective than the majority. A rank in an earlier one had not come that far, and is ignored.
std::optional<Straggler> odd_one_out(const std::vector<Flight>& flights) {
  std::map<std::string, std::vector<const Flight*>> by_collective;
  bool mismatch = false;
  std::uint32_t newest = 0;
  for (const Flight& flight : flights) {
    mismatch = mismatch || flight.code == ErrorCode::collective_mismatch;
    if (flight.now.site >= 0) newest = std::max(newest, flight.now.sequence);
  }
  for (const Flight& flight : flights) {
    if (flight.now.site >= 0 && flight.now.sequence == newest)
      by_collective[fmt::format("{} #{}", collective_of(flight), newest)].push_back(&flight);
  }
  if (!mismatch || by_collective.size() < 2) return std::nullopt;
  const auto most = std::max_element(by_collective.begin(), by_collective.end(),
                                     [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  if (most->second.size() < 2) return std::nullopt;
  std::optional<Straggler> odd;
  for (const auto& [collective, ranks] : by_collective) {
    if (&ranks == &most->second) continue;
    if (odd || ranks.size() > 1) return std::nullopt;
    odd = Straggler{Straggler::Kind::mismatch,
                    static_cast<int>(ranks[0]->identity.rank),
                    RankStage::transfer,
                    ranks[0]->now.step,
                    {},
                    {},
                    collective,
                    -1};
  }
  return odd;
}

}  // namespace

std::optional<Straggler> what_ended(const std::vector<Flight>& flights) {
  for (const Flight& flight : flights) {
    if (flight.code != ErrorCode::flipped_bit) continue;  // the others repeat its message, without its code
    Straggler flipped;
    flipped.kind = Straggler::Kind::flipped_bit;
    flipped.rank = static_cast<int>(flight.identity.rank);
    flipped.stage = RankStage::backward;
    flipped.step = flight.now.step;
    flipped.detail = flight.failed;
    return flipped;
  }
  return odd_one_out(flights);
}

}  // namespace systole
