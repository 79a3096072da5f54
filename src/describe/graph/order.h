#pragma once
// Which action of a schedule has certainly ended when another begins. A stream runs its actions in the order of the
// list; `waits` order streams among each other. Kept as vector clocks, so a pair is answered in constant time.

#include <array>
#include <vector>

#include "describe/graph/program.h"

namespace systole {

class ActionOrder {
 public:
  // Errors: Failure(invalid): an action waits for one that does not come before it in the list.
  explicit ActionOrder(const Schedule& schedule);

  // Has `a` ended when `b` begins?
  bool before(int a, int b) const;
  // The first place in the list from which on every action begins after `a` has ended.
  int release(int a) const { return release_[static_cast<std::size_t>(a)]; }

  // Per stream: how many of its actions have ended. Along a stream no number becomes smaller.
  using Clock = std::array<int, kNumStreams>;
  const Clock& when_begins(int a) const { return begins_[static_cast<std::size_t>(a)]; }
  int stream(int a) const { return stream_[static_cast<std::size_t>(a)]; }
  int rank(int a) const { return rank_[static_cast<std::size_t>(a)]; }

 private:
  std::vector<Clock> begins_;                 // per action: the clock when it begins
  std::vector<int> stream_, rank_, release_;  // per action; its rank is its number within its stream
};

}  // namespace systole
