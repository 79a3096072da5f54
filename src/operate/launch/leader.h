#pragma once
// The leading agent: it holds the membership, and serves the rendezvous in its process.

#include <map>
#include <set>

#include "ground/base/clock.h"
#include "ground/net/rendezvous_server.h"
#include "operate/launch/node_work.h"

namespace systole {

class LaunchLeader {
 public:
  static Result<std::unique_ptr<LaunchLeader>> make(const LaunchOptions& options,
                                                    std::unique_ptr<RendezvousServer> server, RunToken token);
  Result<LaunchOutcome> run();

 private:
  LaunchLeader(const LaunchOptions& options, std::unique_ptr<RendezvousServer> server, RendezvousClient client,
               NodeWork work);
  Status give(const LaunchEvent& event);
  Status carry_out(const LaunchAction& action);
  Status publish(LaunchPlan plan);
  Status watch_nodes();
  Status hear_exits();
  Status watch_heartbeats();
  Status hear_user();
  void say_goodbye();
  bool due(Seconds& last, double every);

  const LaunchOptions& options_;
  std::unique_ptr<RendezvousServer> server_;
  RendezvousClient client_;
  NodeWork work_;
  Membership membership_;
  std::unique_ptr<Clock> real_;
  Clock* clock_;
  std::set<std::string> nodes_;            // joined nodes, besides this one
  std::set<std::string> exits_;            // keys already handled, of this generation
  std::map<int, Seconds> seen_;            // last sign of life by rank
  std::set<int> hung_;                     // reported ranks of this generation
  static constexpr Seconds kNever{-1e12};  // before any time; the clock's zero means nothing
  Seconds started_{}, nodes_at_ = kNever, heartbeats_at_ = kNever, looked_at_ = kNever, checkpoint_at_ = kNever;
  std::int64_t checkpoint_ = -1;
  int stops_ = 0;
  std::optional<LaunchOutcome> outcome_;
};

}  // namespace systole
