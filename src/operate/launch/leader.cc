#include "operate/launch/leader.h"

#include <charconv>
#include <thread>

namespace systole {
namespace {

constexpr Seconds kBeat(0.02);

void tell(const LaunchOptions& options, const std::string& sentence) {
  if (options.tell) options.tell(sentence);
}

}  // namespace

Result<std::unique_ptr<LaunchLeader>> LaunchLeader::make(const LaunchOptions& options,
                                                         std::unique_ptr<RendezvousServer> server, RunToken token) {
  RendezvousClient client = TRY(RendezvousClient::connect(server->address(), token, {.tls = options.tls}));
  TRY(client.set(kLeaderKey, to_text(LeaderName{options.node, options.version})));
  TRY(client.set(kWorkloadKey, options.workload));
  NodeWork work = TRY(NodeWork::make(options, server->address(), token));  // the rendezvous is here
  return std::unique_ptr<LaunchLeader>(
      new LaunchLeader(options, std::move(server), std::move(client), std::move(work)));
}

LaunchLeader::LaunchLeader(const LaunchOptions& options, std::unique_ptr<RendezvousServer> server,
                           RendezvousClient client, NodeWork work)
    : options_(options),
      server_(std::move(server)),
      client_(std::move(client)),
      work_(std::move(work)),
      membership_(options.membership),
      real_(real_clock()),
      clock_(options.clock != nullptr ? options.clock : real_.get()) {}

Result<LaunchOutcome> LaunchLeader::run() {
  TRY(give(NodeJoined{options_.node, options_.slots}));
  while (!outcome_) {
    for (const RankExited& exit : work_.ranks().poll(kBeat)) TRY(give(exit));
    if (work_.ranks().empty()) clock_->sleep(kBeat);  // none of our ranks runs, so there is no output to wait for
    TRY(hear_user());
    if (due(nodes_at_, 0.05)) {
      TRY(watch_nodes());
      TRY(hear_exits());
    }
    if (due(heartbeats_at_, 0.2)) TRY(watch_heartbeats());
    if (options_.watch != nullptr && due(looked_at_, 0.1)) options_.watch->look(clock_->now());
    if (options_.chaos != nullptr) options_.chaos->act(work_.ranks(), clock_->now());
    TRY(give(Tick{}));
  }
  say_goodbye();
  return *outcome_;
}

bool LaunchLeader::due(Seconds& last, double every) {
  const Seconds now = clock_->now();
  if (now - last < Seconds(every)) return false;
  last = now;
  return true;
}

Status LaunchLeader::give(const LaunchEvent& event) {
  for (const LaunchAction& action : membership_.handle(event, clock_->now())) TRY(carry_out(action));
  return Done{};
}

Status LaunchLeader::carry_out(const LaunchAction& action) {
  if (const auto* told = std::get_if<Tell>(&action)) {
    tell(options_, told->sentence);
  } else if (const auto* start = std::get_if<StartGeneration>(&action)) {
    started_ = clock_->now();
    if (options_.watch != nullptr)
      options_.watch->starts(start->generation, static_cast<int>(start->ranks.size()), started_);
    exits_.clear();
    seen_.clear();
    hung_.clear();
    TRY(client_.fence(start->generation));
    if (start->generation > 1) TRY(client_.erase(exits_key(start->generation - 1)));
    tell(options_, fmt::format("generation {} starts with {} rank{}", start->generation, start->ranks.size(),
                               start->ranks.size() == 1 ? "" : "s"));
    return publish({.generation = start->generation, .order = LaunchPlan::Order::run, .ranks = start->ranks});
  } else if (const auto* ask = std::get_if<AskRanksToStop>(&action)) {
    return publish({.generation = ask->generation, .order = LaunchPlan::Order::stop, .signal = ask->signal});
  } else if (const auto* kill = std::get_if<KillRanks>(&action)) {
    if (options_.watch != nullptr && !kill->cause.empty())
      options_.watch->ends(kill->generation, kill->cause, kill->rank, clock_->now());
    return publish({.generation = kill->generation, .order = LaunchPlan::Order::kill});
  } else if (const auto* end = std::get_if<EndLaunch>(&action)) {
    outcome_ = end->outcome;
  }
  return Done{};
}

Status LaunchLeader::publish(LaunchPlan plan) {
  TRY(client_.set(kPlanKey, to_text(plan)));
  return work_.apply(plan, client_);
}

Status LaunchLeader::watch_nodes() {
  std::set<std::string> live;
  for (const RendezvousLease& lease : TRY(client_.leases(kNodeLeases))) {
    const std::string name = lease.name.substr(kNodeLeases.size());
    const std::optional<NodeOffer> offer = parse_offer(lease.who);
    if (!lease.live() || !offer || offer->workload != options_.workload || name == options_.node) continue;
    live.insert(name);
    if (!nodes_.insert(name).second) continue;
    tell(options_, fmt::format("node {} joined with room for {}", name, offer->slots));
    TRY(give(NodeJoined{name, offer->slots}));
  }
  const std::set<std::string> known = nodes_;
  for (const std::string& name : known) {
    if (live.contains(name)) {
      if (TRY(client_.get(leaving_key(name)))) TRY(give(NodeLeaving{name}));
      continue;
    }
    nodes_.erase(name);
    TRY(client_.erase(leaving_key(name)));
    TRY(give(NodeLeft{name, "its lease ran out"}));
  }
  return Done{};
}

Status LaunchLeader::hear_exits() {
  const std::uint64_t generation = membership_.generation();
  for (const RendezvousEntry& entry : TRY(client_.list(exits_key(generation)))) {
    if (!exits_.insert(entry.key).second) continue;
    if (const std::optional<RankExited> exit = parse_exit(generation, entry.key, entry.value)) TRY(give(*exit));
    if (membership_.generation() != generation) break;
  }
  return Done{};
}

// Ranks of our own programs keep a lease. A rank that stops renewing it, or never takes it, hangs.
Status LaunchLeader::watch_heartbeats() {
  if (!options_.membership.own_ranks || membership_.generation() == 0) return Done{};
  const std::uint64_t generation = membership_.generation();
  const Seconds now = clock_->now();
  std::map<int, Seconds> silent;
  for (const RendezvousLease& lease : TRY(client_.leases(kRankLeases))) {
    int rank = -1;
    const std::string_view digits = std::string_view(lease.name).substr(kRankLeases.size());
    std::from_chars(digits.data(), digits.data() + digits.size(), rank);
    if (lease.live()) {
      seen_[rank] = now;
    } else {
      silent[rank] = options_.heartbeat - lease.left;
    }
  }
  constexpr Seconds kToEnd(60.0);  // from releasing its place to the end of its process
  for (int rank = 0; rank < static_cast<int>(membership_.ranks().size()); ++rank) {
    const auto seen = seen_.find(rank);
    if (seen == seen_.end() && now - started_ > options_.start_time) silent.emplace(rank, now - started_);
    if (seen != seen_.end() && now - seen->second > options_.heartbeat + kToEnd)
      silent.emplace(rank, now - seen->second);
  }
  for (const auto& [rank, time] : silent) {
    if (membership_.generation() != generation) break;
    if (hung_.insert(rank).second) TRY(give(RankHung{generation, rank, time}));
  }
  return Done{};
}

Status LaunchLeader::hear_user() {
  const LaunchStop stop = options_.stop ? options_.stop() : LaunchStop{};
  if (stop.count > stops_) {
    const bool at_once = stop.count > 1;
    stops_ = stop.count;
    TRY(give(StopRequested{stop.signal, at_once, stop.budget}));
  }
  if (options_.newest_checkpoint && due(checkpoint_at_, 0.5)) {
    const std::int64_t newest = options_.newest_checkpoint();
    if (newest > checkpoint_) {
      checkpoint_ = newest;
      TRY(give(Progressed{}));
    }
  }
  return Done{};
}

// Waits a moment for the others to read the outcome; they may be gone.
void LaunchLeader::say_goodbye() {
  work_.end();
  LaunchPlan plan{.generation = membership_.generation(), .order = LaunchPlan::Order::end, .outcome = *outcome_};
  (void)publish(plan);
  const NetDeadline until = deadline_after(Seconds(3.0));
  while (!nodes_.empty() && std::chrono::steady_clock::now() < until) {
    const Result<std::vector<RendezvousLease>> left = client_.leases(kNodeLeases);
    if (!left.ok() || left->empty()) return;
    clock_->sleep(kBeat);
  }
}

}  // namespace systole
