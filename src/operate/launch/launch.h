#pragma once
// Launches a run of many ranks, from this node. The agent that succeeds in listening at the rendezvous leads: it keeps
// the membership, publishes the plan, and observes the others' leases and reports. The others follow. Each agent
// starts, reads and ends the ranks of its own node, and no rank outlives its agent.

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
  int count = 0;        // number of stop requests to this agent
  int signal = 0;       // of the first request
  bool budget = false;  // the run's budget is used up; only the leader's is used
};

struct LaunchOptions {
  MembershipOptions membership = {};                            // only the leader's are used
  int slots = 1;                                                // most ranks of this node
  std::string node = "node";                                    // unique among the nodes of the run
  NetAddress rendezvous = {};                                   // loopback and port 0: a single node
  std::optional<RunToken> token = {};                           // of the run; generated if this node is alone
  std::string host = "127.0.0.1";                               // this node's address for the others
  bool tls = false;                                             // TLS between nodes and ranks; the same on all
  bool follows = false;                                         // never leads, even if it could
  std::string run = "run", workload = "none", version = "any";  // version of systole; the same on all nodes
  Command command = {};                                         // the same for every rank: argv, env, cwd
  std::string log_folder = ".";
  Seconds heartbeat = Seconds(10.0);                // of nodes and ranks: after so long a silence one counts as lost
  Seconds start_time = Seconds(120.0);              // for one of our own ranks to take its place
  std::function<void(std::string_view)> tell = {};  // sentences for the user
  LocalRanks::LineSink line = {};                   // output of the ranks of this node
  std::function<LaunchStop()> stop = {};
  std::function<std::int64_t()> newest_checkpoint = {};  // its step; -1: none
  // Called once this agent has joined, as leader or follower: from then on `stop` ends it. Before, it holds nothing
  // that must be released.
  std::function<void()> begins = {};
  // Called once this agent leads, before any other agent learns of the run: for what only one agent may do. Returns an
  // observer, or null.
  std::function<Result<LaunchWatch*>()> lead = {};
  LaunchWatch* watch = nullptr;  // from `lead`
  Chaos* chaos = nullptr;        // for the ranks of this node
  Clock* clock = nullptr;        // null: the real one
};

// Returns the outcome when the run has ended; then no rank of this node is alive. Errors: invalid (another workload or
// token than the leader's, or TLS on one side only), unsupported (another version of systole; no libssl), exists (a
// node of this name has joined), corrupt (no rendezvous listens there), not_found (the program, the host), busy, io (no
// leader there within gather_time).
Result<LaunchOutcome> launch(LaunchOptions options);

}  // namespace systole
