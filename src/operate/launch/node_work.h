#pragma once
// Executes the leader's plan on an agent's own node: starts its share of the ranks with their environment, forwards
// signals, kills.

#include "ground/net/rendezvous_client.h"
#include "operate/launch/launch.h"
#include "operate/launch/launch_keys.h"
#include "operate/launch/rank_environment.h"

namespace systole {

class NodeWork {
 public:
  static Result<NodeWork> make(const LaunchOptions& options, NetAddress rendezvous, RunToken token);

  // Errors: of starting a rank; the ranks before it run.
  Status apply(const LaunchPlan& plan, RendezvousClient& client);
  LocalRanks& ranks() { return *ranks_; }
  // Kills the running ranks and waits for their end.
  void end();

 private:
  NodeWork(const LaunchOptions& options, NetAddress rendezvous, RunToken token, std::unique_ptr<LocalRanks> ranks)
      : options_(&options), rendezvous_(std::move(rendezvous)), token_(token), ranks_(std::move(ranks)) {}
  Status start(const LaunchPlan& plan, RendezvousClient& client);
  Result<ForeignPlaces> agree_on_ports(const LaunchPlan& plan, RendezvousClient& client) const;
  Environment environment_of(const RankPlace& place, const ForeignPlaces& places) const;

  const LaunchOptions* options_;
  NetAddress rendezvous_;
  RunToken token_;
  std::unique_ptr<LocalRanks> ranks_;
};

// The place of rank `rank` of a plan, among all and on its node.
RankPlace place_of(const LaunchPlan& plan, int rank);

}  // namespace systole
