#pragma once
// The options of a run on several ranks, translated for operate/launch.

#include <functional>
#include <string>

#include "ground/process/signal_watch.h"
#include "operate/launch/launch.h"
#include "operate/launch/preemption.h"

namespace systole {

struct RankArguments {
  std::string ranks;       // "4", "2:8"; empty: as many as fit here
  int local = 0;           // most ranks of this node; 0: one per GPU, or all if it is the only node
  std::string rendezvous;  // "host:port"; empty: this node alone
  std::string token_file, node, host;
  bool follows = false;
  int restarts = MembershipOptions().restarts_per_hour;
  bool given() const { return !ranks.empty() || local != 0 || !rendezvous.empty(); }
};

// "8", or "2:8": as many as fit between the two. Default: 0.
struct RankRange {
  int least = 0, most = 0;
  bool said() const { return most > 0; }
};
// Errors: invalid.
Result<RankRange> read_ranks(const std::string& text);

// The machines of a run of so many ranks.
std::int64_t machines_of(const RankArguments& arguments, std::int64_t ranks);

// Everything but the command: counts, addresses, token, and output of the ranks and the agent, to `message`. `folder`:
// for the logs; it exists. Errors: invalid, not_found (the token's file).
Result<LaunchOptions> launch_options(const RankArguments& arguments, const std::string& folder, SignalWatch& signals,
                                     std::function<void(const std::string&)> message);

// An announced preemption counts as a SIGTERM to the agent. `preemption` must outlive the launch.
void heed_preemption(LaunchOptions& options, const PreemptionWatch& preemption);

}  // namespace systole
