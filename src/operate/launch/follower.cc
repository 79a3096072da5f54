#include "operate/launch/follower.h"

#include <thread>

#include "ground/base/clock.h"
#include "ground/net/lease_keeper.h"

namespace systole {
namespace {

constexpr Seconds kBeat(0.02);

class Follower {
 public:
  Follower(const LaunchOptions& options, RendezvousClient client, NodeWork work)
      : options_(options), client_(std::move(client)), work_(std::move(work)) {}

  // Takes this node's place; one of the same name that has just died holds it for a while.
  Status join(const RunToken& token) {
    LeaseTerms terms{kNodeLeases + options_.node, to_text(NodeOffer{options_.slots, options_.host, options_.workload}),
                     options_.heartbeat, 0};
    const NetDeadline until = deadline_after(options_.heartbeat * 1.5);
    while (true) {
      auto keeper = LeaseKeeper::start(options_.rendezvous, token, terms, [this](const Error&) { lost_ = true; });
      if (keeper.ok()) {
        keeper_ = std::move(keeper).value();
        return Done{};
      }
      const bool may_pass = keeper.error().kind == ErrorKind::exists && std::chrono::steady_clock::now() < until;
      if (!may_pass) return std::move(keeper).error();
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

  // A rank that cannot be started is one that ended at once.
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

  // Asked to stop, a node tells the leader, waits for its ranks to save with the others, and goes.
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

Result<LaunchOutcome> follow_launch(const LaunchOptions& options, const RunToken& token) {
  RendezvousClient client =
      TRY(RendezvousClient::connect(options.rendezvous, token, {.connect_time = options.membership.gather_time}));
  const std::string workload = TRY(client.wait(kWorkloadKey, options.membership.gather_time));
  if (workload != options.workload) {
    return error(ErrorKind::invalid, "node {} runs another workload ({}) than this run ({})", options.node,
                 options.workload, workload)
        .hinted("start all nodes with the same job file, weights and version of systole");
  }
  NodeWork work = TRY(NodeWork::make(options, options.rendezvous, token));
  Follower follower(options, std::move(client), std::move(work));
  TRY(follower.join(token));
  return follower.run();
}

}  // namespace systole
