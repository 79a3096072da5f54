#include "operate/launch/follower.h"

#include <thread>

#include "ground/base/clock.h"
#include "ground/net/lease_keeper.h"

namespace systole {
namespace {

constexpr Seconds kBeat(0.02);
constexpr Seconds kToldAfter(2.0);  // report after waiting so long for others

void tell(const LaunchOptions& options, const std::string& sentence) {
  if (options.tell) options.tell(sentence);
}

Error name_is_taken(const LaunchOptions& options, const std::string& by) {
  return error(ErrorKind::exists, "a node named '{}' is in this run already{}", options.node, by)
      .hinted("--node: a name that no other node of the run has");
}

// The leader may start later, so a wrong address or port looks the same: it is reported, and waited for.
Result<RendezvousClient> reach_leader(const LaunchOptions& options, const RunToken& token,
                                      const std::string& cannot_lead) {
  const NetDeadline until = deadline_after(options.membership.gather_time);
  std::string told;
  while (true) {
    Result<RendezvousClient> client = RendezvousClient::connect(
        options.rendezvous, token,
        {.connect_time = std::min(kToldAfter, options.membership.gather_time), .tls = options.tls});
    if (client.ok()) return client;
    Error why = std::move(client).error();
    const bool may_come = why.kind == ErrorKind::io || why.kind == ErrorKind::not_found;
    if (!may_come) return why;
    if (std::chrono::steady_clock::now() >= until) {
      why.message +=
          cannot_lead.empty() ? "; this node follows and does not lead" : "; nor can it lead: " + cannot_lead;
      why.hint = "--rendezvous HOST:PORT: the same on all nodes, the address of the one that leads";
      return why;
    }
    const std::string now = fmt::format(
        "no node leads at {} yet: {}{}; waiting for one, {} at most", to_string(options.rendezvous), why.message,
        cannot_lead.empty() ? "" : "; this one cannot: " + cannot_lead, to_string(options.membership.gather_time));
    if (now == told) continue;
    told = now;
    tell(options, now);
  }
}

// The workload that the leader will run.
Result<std::string> workload_of(const LaunchOptions& options, RendezvousClient& client) {
  Result<std::string> workload = client.wait(kWorkloadKey, kToldAfter);
  if (workload.ok() || workload.error().kind != ErrorKind::not_found) return workload;
  tell(options, "the node that leads prepares the run; waiting for it");
  return client.wait(kWorkloadKey, options.membership.gather_time);
}

class Follower {
 public:
  Follower(const LaunchOptions& options, RendezvousClient client, NodeWork work)
      : options_(options), client_(std::move(client)), work_(std::move(work)) {}

  // Joins as this node. A node of the same name that has just died keeps the name for a while.
  Status join(const RunToken& token) {
    LeaseTerms terms{kNodeLeases + options_.node, to_text(NodeOffer{options_.slots, options_.host, options_.workload}),
                     options_.heartbeat, 0, options_.tls};
    const NetDeadline until = deadline_after(options_.heartbeat * 1.5);
    std::optional<Seconds> left_before;
    while (true) {
      auto keeper = LeaseKeeper::start(options_.rendezvous, token, terms, [this](const Error&) { lost_ = true; });
      if (keeper.ok()) {
        keeper_ = std::move(keeper).value();
        return Done{};
      }
      if (keeper.error().kind != ErrorKind::exists) return std::move(keeper).error();
      std::string by;
      Seconds left;
      for (const RendezvousLease& lease : TRY(client_.leases(terms.name))) {
        if (lease.name != terms.name) continue;
        const std::optional<NodeOffer> offer = parse_offer(lease.who);
        by = offer ? ", at " + offer->host : "";
        left = lease.left;
      }
      const bool is_renewed = left_before && left > *left_before;  // the other one is alive
      if (is_renewed || std::chrono::steady_clock::now() >= until) return name_is_taken(options_, by);
      if (!left_before)
        tell(options_, fmt::format("node '{}' is in this run; waiting to see whether it lives", options_.node));
      left_before = left;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }

  LaunchOutcome run() {
    Result<LaunchOutcome> outcome = follow();
    work_.end();
    keeper_.reset();
    if (outcome.ok()) return *outcome;
    return {kExitNotSaved, fmt::format("this node's ranks ended: {}", outcome.error().message)};
  }

 private:
  Result<LaunchOutcome> follow() {
    while (true) {
      TRY(report(work_.ranks().poll(kBeat)));
      if (work_.ranks().empty()) std::this_thread::sleep_for(std::chrono::milliseconds(20));
      if (options_.chaos != nullptr) options_.chaos->act(work_.ranks(), clock_->now());
      if (lost_) return error(ErrorKind::io, "its lease was lost");
      const std::optional<std::string> text = TRY(client_.get(kPlanKey));
      if (text && *text != seen_) {
        seen_ = *text;
        const LaunchPlan plan = TRY(parse_plan(seen_));
        if (plan.order == LaunchPlan::Order::end) return plan.outcome;
        TRY(carry_out(plan));
      }
      if (const std::optional<LaunchOutcome> left = TRY(leave_if_asked())) return *left;
    }
  }

  // A rank that cannot be started counts as one that ended at once.
  Status carry_out(const LaunchPlan& plan) {
    generation_ = plan.generation;
    const Status done = work_.apply(plan, client_);
    if (done.ok()) return Done{};
    if (options_.tell) options_.tell(to_string(done.error()));
    std::vector<RankExited> failed;
    for (int rank = 0; rank < static_cast<int>(plan.ranks.size()); ++rank) {
      const bool ours = plan.ranks[static_cast<std::size_t>(rank)].node == options_.node;
      if (ours && work_.ranks().pid_of(rank) < 0) failed.push_back({plan.generation, rank, kExitMissing, 0});
    }
    return report(failed);
  }

  Status report(const std::vector<RankExited>& exits) {
    for (const RankExited& exit : exits) {
      TRY(client_.set(exits_key(exit.generation) + std::to_string(exit.rank), exit_text(exit)));
    }
    return Done{};
  }

  // When asked to stop: tells the leader, waits for its ranks to save with the others, and leaves.
  Result<std::optional<LaunchOutcome>> leave_if_asked() {
    const LaunchStop stop = options_.stop ? options_.stop() : LaunchStop{};
    if (stop.count == 0) return std::optional<LaunchOutcome>();
    if (!leaving_) {
      TRY(client_.set(leaving_key(options_.node), "asked"));
      leaving_ = true;
      leaves_generation_ = generation_;
      leave_by_ = deadline_after(options_.membership.notice);
    }
    const bool over = std::chrono::steady_clock::now() >= leave_by_ || stop.count > 1;
    const bool gone = work_.ranks().empty() && (generation_ != leaves_generation_ || over);
    if (!gone && !over) return std::optional<LaunchOutcome>();
    const bool in_time = work_.ranks().empty();
    return std::optional<LaunchOutcome>(
        LaunchOutcome{in_time ? kExitSaved : kExitNotSaved, fmt::format("node {} left the run", options_.node)});
  }

  const LaunchOptions& options_;
  RendezvousClient client_;
  NodeWork work_;
  std::unique_ptr<Clock> real_ = real_clock();
  Clock* clock_ = options_.clock != nullptr ? options_.clock : real_.get();
  std::atomic<bool> lost_{false};
  std::unique_ptr<LeaseKeeper> keeper_;
  std::string seen_;
  std::uint64_t generation_ = 0, leaves_generation_ = 0;
  bool leaving_ = false;
  NetDeadline leave_by_{};
};

}  // namespace

Result<LaunchOutcome> follow_launch(const LaunchOptions& options, const RunToken& token,
                                    const std::string& cannot_lead) {
  RendezvousClient client = TRY(reach_leader(options, token, cannot_lead));
  const std::string workload = TRY(workload_of(options, client));
  const LeaderName leader = parse_leader(TRY(client.get(kLeaderKey)).value_or(""));
  if (leader.version != options.version) {
    return error(ErrorKind::unsupported, "node {} runs {}, and node {}, which leads, {}", options.node, options.version,
                 leader.node, leader.version)
        .hinted("the same systole on all nodes: systole --version");
  }
  if (leader.node == options.node) return name_is_taken(options, ": it leads");
  if (workload != options.workload) {
    return error(ErrorKind::invalid, "node {} runs another workload ({}) than this run ({})", options.node,
                 options.workload, workload)
        .hinted("start all nodes with the same job file, weights and version of systole");
  }
  NodeWork work = TRY(NodeWork::make(options, options.rendezvous, token));
  Follower follower(options, std::move(client), std::move(work));
  TRY(follower.join(token));
  if (options.begins) options.begins();
  return follower.run();
}

}  // namespace systole
