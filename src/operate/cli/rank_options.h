#pragma once
// The options of a run on many ranks, and what they ask of operate/launch.

#include <string>

#include "ground/process/signal_watch.h"
#include "operate/cli/command.h"
#include "operate/cli/options.h"
#include "operate/launch/launch.h"
#include "operate/launch/preemption.h"

namespace systole::cli {

struct RankArguments {
  std::string ranks;       // "4", "2:8"; empty: as many as have a place here
  int local = 0;           // ranks of this node at most; 0: its GPUs, or with one node alone all
  std::string rendezvous;  // "host:port"; empty: this node alone
  std::string token_file, node, host;
  bool follows = false;
  int restarts = MembershipOptions().restarts_per_hour;
  bool given() const { return !ranks.empty() || local != 0 || !rendezvous.empty(); }
};

// "8", or "2:8": as many as there are between the two. Nothing said: 0.
struct RankRange {
  int least = 0, most = 0;
  bool said() const { return most > 0; }
};
// Errors: invalid.
Result<RankRange> read_ranks(const std::string& text);

// Of a run of so many ranks.
std::int64_t machines_of(const RankArguments& arguments, std::int64_t ranks);

void add_rank_arguments(Subcommand command, RankArguments& arguments);

// Everything but what is run: numbers, addresses, token, and what the ranks and the agent say, to `context`.
// `folder`: for the logs; it is there. Errors: invalid, not_found (the token's file).
Result<LaunchOptions> launch_options(const RankArguments& arguments, const std::string& folder, SignalWatch& signals,
                                     Context& context);

// A preemption that is announced counts as a SIGTERM to the agent. `preemption` must outlive the launch.
void heed_preemption(LaunchOptions& options, const PreemptionWatch& preemption);

}  // namespace systole::cli
