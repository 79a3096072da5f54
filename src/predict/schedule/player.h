#pragma once
// The schedule player: computes when each action ends, from the actions' durations. For estimates and the plan search.
//
//   device  starts its actions in the order of the list
//   stream  of a device; runs one action at a time
//   action  begins when the action before it on its stream and all actions that it waits for, on any device, have
//           ended; it ends after its duration
//
// The order of actions does not depend on durations. A player finds it once; each play is one pass over it.

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "describe/program/program.h"
#include "ground/base/units.h"

namespace systole {

struct TimedAction {
  int device = 0;
  Stream stream = Stream::compute;
  int duration = 0;  // index into the durations of a play
};

// The actions of all devices. An action's id is its index in `actions`.
struct ActionGraph {
  int devices = 1;
  std::vector<TimedAction> actions;        // the actions of one device are in its start order
  std::vector<std::pair<int, int>> waits;  // the first begins after the second has ended
};

class SchedulePlayer {
 public:
  // Errors: Failure(internal) on deadlock: waits and start orders form a cycle.
  explicit SchedulePlayer(const ActionGraph& graph);

  // The end of each action, by its id; time starts at zero. REQUIRES: a duration for each action.
  std::vector<Seconds> ends(std::span<const Seconds> durations) const;
  // The end of the last action; zero without actions.
  Seconds time(std::span<const Seconds> durations) const;

  std::size_t num_actions() const { return steps_.size(); }

 private:
  struct Step {
    std::int32_t action, duration;
    std::int32_t stream;      // index over all devices' streams
    std::int32_t waits_from;  // its waits in waits_, up to those of the next step
  };
  std::size_t streams_ = 0;
  std::vector<Step> steps_;          // in an order in which no step waits for a later one
  std::vector<std::int32_t> waits_;  // ids of actions
};

}  // namespace systole
