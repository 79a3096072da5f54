#pragma once
// A run of many ranks, from this node. The agent that gets to listen at the rendezvous leads: it keeps the membership,
// publishes what is to be done, and learns from the others' leases and reports. The others follow. Each starts, hears
// and ends the ranks of its own node, and none outlives it.

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "ground/base/clock.h"
#include "ground/net/socket.h"
#include "ground/net/token.h"
#include "ground/process/spawn.h"
#include "operate/launch/chaos.h"
#include "operate/launch/launch_watch.h"
#include "operate/launch/local_ranks.h"
#include "operate/launch/membership.h"

namespace systole {

struct LaunchStop {
  int count = 0;        // how often this agent was asked to stop
  int signal = 0;       // the first time
  bool budget = false;  // what the run may cost is used; the leader's counts
};

struct LaunchOptions {
  MembershipOptions membership = {};                            // the leader's counts
  int slots = 1;                                                // ranks that this node can run
  std::string node = "node";                                    // one of a kind among the nodes of the run
  NetAddress rendezvous = {};                                   // loopback and port 0: this node alone
  std::optional<RunToken> token = {};                           // of the run; made here when this node is alone
  std::string host = "127.0.0.1";                               // where the other nodes reach this one
  bool tls = false;                                             // between nodes and ranks; on all nodes the same
  bool follows = false;                                         // never leads, though it could listen at the rendezvous
  std::string run = "run", workload = "none", version = "any";  // of systole: of all nodes the same
  Command command = {};                                         // of every rank: argv, env, cwd
  std::string log_folder = ".";
  Seconds heartbeat = Seconds(10.0);                // of nodes and ranks: silent for so long, one counts as lost
  Seconds start_time = Seconds(120.0);              // for a rank of our own to take its place
  std::function<void(std::string_view)> tell = {};  // sentences for the user
  LocalRanks::LineSink line = {};                   // what the ranks of this node say
  std::function<LaunchStop()> stop = {};
  std::function<std::int64_t()> newest_checkpoint = {};  // its step, -1 for none
  // Called once this agent has its place, as leader or follower: from here on it is `stop` that ends it. Before, it
  // holds nothing that must be given back.
  std::function<void()> begins = {};
  // Called once this agent leads, before any other agent is told of the run: what only one of them may do.
  // Returns who looks on, or null.
  std::function<Result<LaunchWatch*>()> lead = {};
  LaunchWatch* watch = nullptr;  // as `lead` returned it
  Chaos* chaos = nullptr;        // of the ranks of this node
  Clock* clock = nullptr;        // this agent's; null: the real one
};

// Returns when the run has ended, with how; no rank of this node lives then.
// Errors: invalid (another workload or token than the leader's, or TLS on one side), unsupported (another version of
// systole; no libssl), exists (a node of this name is there already), corrupt (no rendezvous listens there), not_found
// (the program, the host), busy, io (nobody leads there within gather_time).
Result<LaunchOutcome> launch(LaunchOptions options);

}  // namespace systole
