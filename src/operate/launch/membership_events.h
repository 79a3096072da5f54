#pragma once
// What a launch is told and what it orders (membership.h): plain values.

#include <compare>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "ground/base/exit_code.h"
#include "ground/base/units.h"

namespace systole {

// A place where one rank can run: on a node, by number (a GPU, or a share of the cores).
struct RankSlot {
  std::string node;
  int index = 0;
  auto operator<=>(const RankSlot&) const = default;
};

// How a run of many ranks ended; the code as `systole help exit-codes` lists them.
struct LaunchOutcome {
  int exit_code = 0;
  std::string sentence;
  bool operator==(const LaunchOutcome&) const = default;
};

// Events.

struct NodeJoined {
  std::string node;
  int slots = 0;
};
struct NodeLeft {  // said so, or its lease ran out: its ranks are gone, or will find themselves refused
  std::string node, why;
};
struct NodeLeaving {  // it was asked to go, and is still there for a while
  std::string node;
};
struct RankExited {
  std::uint64_t generation = 0;
  int rank = 0, code = 0, signal = 0;  // signal: that killed it, or 0
};
struct RankHung {  // its heartbeat stopped
  std::uint64_t generation = 0;
  int rank = 0;
  Seconds silent{};
};
struct StopAsked {
  int signal = 0;
  bool at_once = false;  // a second Ctrl-C: save nothing
  bool budget = false;   // by nobody: what it may cost is used
};
struct Progressed {};  // a checkpoint newer than those before was committed
struct Tick {};        // time passed

using LaunchEvent = std::variant<NodeJoined, NodeLeft, NodeLeaving, RankExited, RankHung, StopAsked, Progressed, Tick>;

// Actions, to be carried out in order.

struct StartGeneration {
  std::uint64_t generation = 0;
  std::vector<RankSlot> ranks;  // where rank i runs
};
struct AskRanksToStop {  // SIGTERM to each
  std::uint64_t generation = 0;
  int signal = 0;
};
struct KillRanks {
  std::uint64_t generation = 0;
  std::string cause = {};  // empty: they were asked to stop
  int rank = -1;           // that was the cause, or -1
};
struct Tell {  // the user
  std::string sentence;
};
struct EndLaunch {
  LaunchOutcome outcome;
};

using LaunchAction = std::variant<StartGeneration, AskRanksToStop, KillRanks, Tell, EndLaunch>;

}  // namespace systole
