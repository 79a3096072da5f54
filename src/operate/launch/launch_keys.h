#pragma once
// The contents of a launch's rendezvous: the names of keys, and the plan that the leader publishes and the others
// follow.
//
//   workload             its hash
//   leader               LeaderName, below; written before the workload
//   plan                 LaunchPlan, below
//   ports/GENERATION     "host port port", where rank 0 of a user's program listens
//   leaving/NODE         exists once the node was asked to leave
//   exits/GENERATION/R   "code signal", of a rank on another node
//   leases: node/NAME (who: "SLOTS HOST WORKLOAD"), rank/R

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/result.h"
#include "operate/launch/membership_events.h"

namespace systole {

inline const std::string kWorkloadKey = "workload", kLeaderKey = "leader", kPlanKey = "plan", kNodeLeases = "node/",
                         kRankLeases = "rank/";
inline std::string rank_lease(int rank) { return kRankLeases + std::to_string(rank); }
inline std::string leaving_key(const std::string& node) { return "leaving/" + node + "/"; }
inline std::string ports_key(std::uint64_t generation) { return "ports/" + std::to_string(generation); }
inline std::string exits_key(std::uint64_t generation) { return "exits/" + std::to_string(generation) + "/"; }

// The current order to every agent.
struct LaunchPlan {
  enum class Order { run, stop, kill, end };
  std::uint64_t generation = 0;
  Order order = Order::run;
  int signal = 0;               // for stop
  std::vector<RankSlot> ranks;  // for run
  LaunchOutcome outcome;        // for end
};
std::string to_text(const LaunchPlan& plan);
// Errors: corrupt.
Result<LaunchPlan> parse_plan(std::string_view text);

struct LeaderName {
  std::string node, version;  // of systole
};
std::string to_text(const LeaderName& leader);
LeaderName parse_leader(std::string_view text);

struct NodeOffer {
  int slots = 0;
  std::string host, workload;
};
std::string to_text(const NodeOffer& offer);
std::optional<NodeOffer> parse_offer(std::string_view text);

// "code signal".
std::string exit_text(const RankExited& exit);
// From a key below exits_key(generation) and its value.
std::optional<RankExited> parse_exit(std::uint64_t generation, std::string_view key, std::string_view value);

}  // namespace systole
