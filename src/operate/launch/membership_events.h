#pragma once
// Events and actions of a launch (membership.h): plain values.

#include <compare>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "ground/base/exit_code.h"
#include "ground/base/units.h"

namespace systole {

// A slot for one rank: a node and an index on it (a GPU, or a share of the cores).
struct RankSlot {
  std::string node;
  int index = 0;
  auto operator<=>(const RankSlot&) const = default;
};

// The outcome of a run of many ranks; its code is one that `systole help exit-codes` lists.
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
struct NodeLeft {  // it left, or its lease expired: its ranks are gone, or will be refused
  std::string node, why;
};
struct NodeLeaving {  // it was asked to leave, and stays for a while
  std::string node;
};
struct RankExited {
  std::uint64_t generation = 0;
  int rank = 0, code = 0, signal = 0;  // signal: the one that killed it, or 0
};
struct RankHung {  // its heartbeat stopped
  std::uint64_t generation = 0;
  int rank = 0;
  Seconds silent{};
};
struct StopRequested {
  int signal = 0;
  bool at_once = false;  // a second Ctrl-C: does not save
  bool budget = false;   // not by a user: the budget is used up
};
struct Progressed {};  // a newer checkpoint was committed
struct Tick {};        // time passed

using LaunchEvent =
    std::variant<NodeJoined, NodeLeft, NodeLeaving, RankExited, RankHung, StopRequested, Progressed, Tick>;

// Actions, to be executed in order.

struct StartGeneration {
  std::uint64_t generation = 0;
  std::vector<RankSlot> ranks;  // slot of rank i
};
struct AskRanksToStop {  // SIGTERM to each
  std::uint64_t generation = 0;
  int signal = 0;
};
struct KillRanks {
  std::uint64_t generation = 0;
  std::string cause = {};  // empty: they were asked to stop
  int rank = -1;           // the cause, or -1
};
struct Tell {  // to the user
  std::string sentence;
};
struct EndLaunch {
  LaunchOutcome outcome;
};

using LaunchAction = std::variant<StartGeneration, AskRanksToStop, KillRanks, Tell, EndLaunch>;

}  // namespace systole
