#include "operate/launch/membership.h"

#include <algorithm>
#include <csignal>
#include <cstring>

#include "ground/base/counted.h"
#include "ground/base/error.h"

namespace systole {
namespace {

std::string signal_name(int number) {
  const char* name = ::sigabbrev_np(number);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", number);
}

// Constructs in place: gcc 12 warns falsely about a moved variant.
template <typename Action>
void order(std::vector<LaunchAction>& actions, Action action) {
  actions.emplace_back(std::in_place_type<Action>, std::move(action));
}

}  // namespace

std::vector<LaunchAction> Membership::handle(const LaunchEvent& event, Seconds now) {
  Actions actions;
  now_ = now;
  if (phase_ != Phase::ended) {
    std::visit([&](const auto& e) { on(e, actions); }, event);
  }
  return actions;
}

std::string Membership::name_of(int rank) const {
  const RankSlot& slot = ranks_[static_cast<std::size_t>(rank)];
  return nodes_.size() > 1 ? fmt::format("rank {} (node {}, slot {})", rank, slot.node, slot.index)
                           : fmt::format("rank {}", rank);
}

// Slots where a rank may run, in the order in which their nodes joined.
std::vector<RankSlot> Membership::usable() const {
  std::vector<std::pair<std::int64_t, std::string>> order;
  for (const auto& [name, node] : nodes_) order.emplace_back(node.order, name);
  std::sort(order.begin(), order.end());
  std::vector<RankSlot> slots;
  for (const auto& [place, name] : order) {
    for (int i = 0; i < nodes_.at(name).slots; ++i) {
      if (!left_out_.contains({name, i})) slots.push_back({name, i});
    }
  }
  return slots;
}

// While gathering: starts when there are enough slots, and gives up at the deadline.
void Membership::gather(Actions& actions) {
  std::vector<RankSlot> slots = usable();
  const auto count = static_cast<int>(slots.size());
  const bool first = generation_ == 0;
  if (!deadline_) deadline_ = now_ + options_.gather_time;
  if (count >= options_.min_ranks && !grow_at_) grow_at_ = first ? now_ + options_.settle_time : now_;
  if (count < options_.min_ranks) grow_at_.reset();
  if (count >= options_.max_ranks || (grow_at_ && now_ >= *grow_at_)) {
    slots.resize(static_cast<std::size_t>(std::min(count, options_.max_ranks)));
    start(std::move(slots), actions);
  } else if (now_ >= *deadline_) {
    // A run that had begun lost nodes, without a failed rank: a restart may get others.
    const int code = generation_ > 0 && left_out_.empty() ? kExitNotSaved : kExitNo;
    end({code, fmt::format("{} of the {} needed have a place after {}", count, counted(options_.min_ranks, "rank"),
                           to_string(options_.gather_time))},
        actions);
  }
}

void Membership::start(std::vector<RankSlot> slots, Actions& actions) {
  ++generation_;
  phase_ = Phase::running;
  ranks_ = std::move(slots);
  alive_.clear();
  for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) alive_.insert(rank);
  codes_.assign(ranks_.size(), 0);
  faults_.clear();
  deadline_.reset();
  grow_at_.reset();
  order(actions, StartGeneration{generation_, ranks_});
}

void Membership::on(const NodeJoined& event, Actions& actions) {
  if (nodes_.contains(event.node)) on(NodeLeft{event.node, "its agent started anew"}, actions);
  if (phase_ == Phase::ended) return;
  nodes_[event.node] = {event.slots, joined_++};
  if (phase_ == Phase::gathering) gather(actions);
  const bool could_grow = static_cast<int>(ranks_.size()) < options_.max_ranks && usable().size() > ranks_.size();
  if (phase_ == Phase::running && could_grow) grow_at_ = now_ + options_.settle_time;
}

void Membership::on(const NodeLeft& event, Actions& actions) {
  if (!nodes_.contains(event.node)) return;
  std::vector<int> lost;
  for (const int rank : alive_) {
    if (ranks_[static_cast<std::size_t>(rank)].node == event.node) lost.push_back(rank);
  }
  nodes_.erase(event.node);
  for (const int rank : lost) {
    alive_.erase(rank);
    codes_[static_cast<std::size_t>(rank)] = kExitNotSaved;
  }
  if (phase_ == Phase::gathering) return gather(actions);
  if (phase_ == Phase::running && !lost.empty()) {
    const std::string cause = fmt::format("node {} is gone ({})", event.node, event.why);
    if (may_restart(cause)) {
      order(actions,
            Tell{fmt::format("{}, with {}: generation {} ends", cause, counted(lost.size(), "rank"), generation_)});
    }
    return kill(actions, cause);
  }
  if (phase_ != Phase::running && alive_.empty()) all_gone(actions);
}

// With enough slots left it saves and goes on without the node; otherwise it saves and stops.
void Membership::on(const NodeLeaving& event, Actions& actions) {
  const auto node = nodes_.find(event.node);
  if (node == nodes_.end() || node->second.slots == 0) return;
  node->second.slots = 0;
  if (phase_ == Phase::gathering) return gather(actions);
  if (phase_ != Phase::running) return;
  const bool enough = static_cast<int>(usable().size()) >= options_.min_ranks;
  order(actions, Tell{fmt::format("node {} is asked to go: generation {} saves and {}", event.node, generation_,
                                  enough ? "goes on without it" : "stops")});
  if (enough) {
    drain(SIGTERM, actions);
  } else {
    on(StopRequested{SIGTERM}, actions);
  }
}

void Membership::on(const RankExited& event, Actions& actions) {
  if (event.generation != generation_ || !alive(event.rank)) return;
  alive_.erase(event.rank);
  codes_[static_cast<std::size_t>(event.rank)] = event.signal != 0 ? 128 + event.signal : event.code;
  if (phase_ == Phase::running && options_.own_ranks && event.code == kExitOverBudget)
    on(StopRequested{SIGTERM, false, true}, actions);  // all of them stop there
  if (phase_ == Phase::running && (event.code != 0 || event.signal != 0)) {
    const bool final = options_.own_ranks && event.code >= kExitNo && event.code <= kExitMissing;
    const bool victim = event.code == kExitNotSaved || event.code == kExitSaved;
    const Failure failure = event.signal != 0 ? Failure::killed
                            : final           ? Failure::final_code
                            : victim          ? Failure::victim
                                              : Failure::code;
    const std::string what = event.signal != 0 ? "was killed by " + signal_name(event.signal)
                             : event.code == kExitNotSaved && options_.own_ranks
                                 ? "lost the others"
                                 : fmt::format("ended with exit code {}", event.code);
    return suspect({failure, event.rank, what, event.code}, actions);
  }
  if (!alive_.empty()) return;
  if (phase_ == Phase::running && faults_.empty()) {
    return end({kExitDone, fmt::format("{} finished", counted(ranks_.size(), "rank"))}, actions);
  }
  if (phase_ != Phase::running) all_gone(actions);
}

void Membership::on(const RankHung& event, Actions& actions) {
  if (event.generation != generation_ || !alive(event.rank)) return;
  if (phase_ != Phase::running) return;  // killing and draining have their own deadlines
  suspect({Failure::hung, event.rank, fmt::format("gave no sign of life for {}", to_string(event.silent)), 0}, actions);
}

// A rank failed. A more severe failure, the cause, may follow.
void Membership::suspect(Fault fault, Actions& actions) {
  const bool certain = fault.failure == Failure::killed || fault.failure == Failure::hung;
  faults_.push_back(std::move(fault));
  if (!deadline_) deadline_ = now_ + options_.blame_time;
  if (certain || alive_.empty()) decide(actions);
}

void Membership::decide(Actions& actions) {
  const Fault fault = *std::min_element(faults_.begin(), faults_.end(),
                                        [](const Fault& a, const Fault& b) { return a.failure < b.failure; });
  const std::string cause = fmt::format("{} {}", name_of(fault.rank), fault.what);
  faults_.clear();
  if (fault.failure == Failure::final_code) {
    outcome_ = {fault.code, cause};
  } else {
    if (fault.failure != Failure::victim) blame(fault, actions);
    const auto left = static_cast<int>(usable().size());
    if (!outcome_ && left < options_.min_ranks && !left_out_.empty()) {
      const std::string times = counted(options_.failures_until_left_out, "time");
      outcome_ = {kExitNo, fmt::format("{}, {} in a row: {} of the {} needed are left", cause, times, left,
                                       counted(options_.min_ranks, "rank"))};
    }
    if (!outcome_ && may_restart(cause)) {
      order(actions, Tell{fmt::format("{}: generation {} ends", cause, generation_)});
    }
  }
  kill(actions, cause, fault.rank);
}

// Counts a failure against the slot, and leaves the slot out at the limit.
void Membership::blame(const Fault& fault, Actions& actions) {
  const RankSlot& slot = ranks_[static_cast<std::size_t>(fault.rank)];
  std::deque<Seconds>& times = failures_[slot];
  times.push_back(now_);
  while (!times.empty() && times.front() <= now_ - kHour) times.pop_front();
  if (static_cast<int>(times.size()) < options_.failures_until_left_out) return;
  left_out_.insert(slot);
  const std::string where = nodes_.size() > 1 ? " of node " + slot.node : "";
  order(actions, Tell{fmt::format("{} {}, {} without a checkpoint in between: slot {}{} is excluded from now on",
                                  name_of(fault.rank), fault.what, counted(times.size(), "time"), slot.index, where)});
}

// Counts a restart, and checks it against the cap. Beyond the cap the launch will end.
bool Membership::may_restart(const std::string& cause) {
  if (stopping_) {
    outcome_ = {kExitNotSaved, cause + " while the run was asked to stop"};
    return false;
  }
  while (!restarted_.empty() && restarted_.front() <= now_ - kHour) restarted_.pop_front();
  if (static_cast<int>(restarted_.size()) >= options_.restarts_per_hour) {
    outcome_ = {kExitNo, fmt::format("{}, and {} within an hour are as many as allowed", cause,
                                     counted(options_.restarts_per_hour, "restart"))};
    return false;
  }
  restarted_.push_back(now_);
  ++restarts_;
  return true;
}

void Membership::kill(Actions& actions, const std::string& cause, int rank) {
  phase_ = Phase::killing;
  deadline_ = now_ + options_.kill_time;
  grow_at_.reset();
  order(actions, KillRanks{generation_, cause, rank});
  if (alive_.empty()) all_gone(actions);
}

void Membership::drain(int signal, Actions& actions) {
  phase_ = Phase::draining;
  deadline_ = now_ + options_.notice;
  grow_at_.reset();
  order(actions, AskRanksToStop{generation_, signal});
}

void Membership::all_gone(Actions& actions) {
  deadline_.reset();
  if (stopping_ && !outcome_) outcome_ = stopped();
  if (outcome_) return end(*outcome_, actions);
  const bool all_done = phase_ == Phase::draining && options_.own_ranks &&
                        std::all_of(codes_.begin(), codes_.end(), [](int code) { return code == kExitDone; });
  if (all_done) return end({kExitDone, "finished while it was to grow"}, actions);
  phase_ = Phase::gathering;
  gather(actions);
}

// The outcome of a run that was asked to stop. Code 75 comes from ranks that know that the checkpoint is complete.
LaunchOutcome Membership::stopped() const {
  const auto count = [&](int code) { return std::count(codes_.begin(), codes_.end(), code); };
  const auto all = static_cast<std::int64_t>(codes_.size());
  if (options_.own_ranks && all > 0 && count(kExitDone) == all) return {kExitDone, "finished as it was asked to stop"};
  const std::int64_t saved = count(kExitSaved) + (options_.own_ranks ? count(kExitOverBudget) : count(kExitDone));
  const bool whole = options_.own_ranks ? saved > 0 : saved == all && all > 0;
  if (over_budget_)
    return {kExitOverBudget, fmt::format("its budget is used: stopped {}",
                                         whole ? "with its state saved" : "before its state was saved")};
  if (whole) return {kExitSaved, "stopped with its state saved"};
  return {kExitNotSaved, "stopped before its state was saved: it goes on from the checkpoint before"};
}

// True if, after a stop was asked for, a rank has reported a complete checkpoint.
bool Membership::has_saved() const {
  const bool ends = stopping_ && (phase_ == Phase::draining || phase_ == Phase::killing);
  return ends && options_.own_ranks &&
         std::ranges::any_of(codes_, [](int code) { return code == kExitSaved || code == kExitOverBudget; });
}

void Membership::on(const StopRequested& event, Actions& actions) {
  const bool saved = has_saved();
  stopping_ = true;
  over_budget_ = over_budget_ || event.budget;
  if (event.at_once) {
    outcome_ = saved ? stopped() : LaunchOutcome{kExitInterrupted, "interrupted; what was saved before is still there"};
    return kill(actions);
  }
  if (phase_ == Phase::running) {
    drain(event.signal, actions);
  } else if (phase_ == Phase::gathering) {
    end(over_budget_ ? LaunchOutcome{kExitOverBudget, "its budget is used, and no rank ran"}
                     : LaunchOutcome{kExitNotSaved, "asked to stop while no rank ran"},
        actions);
  }
}

void Membership::on(const Progressed&, Actions&) { failures_.clear(); }

void Membership::on(const Tick&, Actions& actions) {
  if (phase_ == Phase::gathering) return gather(actions);
  if (phase_ == Phase::running && deadline_ && now_ >= *deadline_) return decide(actions);
  if (phase_ == Phase::draining && now_ >= *deadline_) {
    order(actions, Tell{fmt::format("{} did not end within {} of being asked to: killed",
                                    counted(alive_.size(), "rank"), to_string(options_.notice))});
    return kill(actions);
  }
  if (phase_ == Phase::killing && now_ >= *deadline_) {
    const LaunchOutcome undying{kExitNo, fmt::format("{} could not be killed within {}", name_of(*alive_.begin()),
                                                     to_string(options_.kill_time))};
    return end(undying, actions);
  }
  if (phase_ == Phase::running && grow_at_ && now_ >= *grow_at_) {
    grow_at_.reset();
    if (usable().size() <= ranks_.size() || !faults_.empty()) return;
    order(actions, Tell{fmt::format("there is room for more ranks: generation {} saves and ends", generation_)});
    drain(SIGTERM, actions);
  }
}

void Membership::end(LaunchOutcome outcome, Actions& actions) {
  phase_ = Phase::ended;
  alive_.clear();
  order(actions, EndLaunch{std::move(outcome)});
}

}  // namespace systole
