#pragma once
// The happens-before order of a schedule's actions. A stream runs its actions in the order of the list; `waits` order
// actions of different streams. Vector clocks answer a pair in constant time.

#include <array>
#include <vector>

#include "describe/program/program.h"

namespace systole {

class ActionOrder {
 public:
  // Errors: Failure(invalid) when an action waits for one that does not come before it in the list.
  explicit ActionOrder(const Schedule& schedule);

  // True if `a` has certainly ended when `b` begins.
  bool before(int a, int b) const;
  // The first place in the list such that it and all later actions begin after `a` has ended.
  int release(int a) const { return release_[static_cast<std::size_t>(a)]; }

  // Per stream, the number of its actions that have ended. Numbers never decrease along a stream.
  using Clock = std::array<int, kNumStreams>;
  const Clock& when_begins(int a) const { return begins_[static_cast<std::size_t>(a)]; }
  int stream(int a) const { return stream_[static_cast<std::size_t>(a)]; }
  int rank(int a) const { return rank_[static_cast<std::size_t>(a)]; }

 private:
  std::vector<Clock> begins_;                 // per action: the clock when it begins
  std::vector<int> stream_, rank_, release_;  // per action; rank: its number within its stream
};

}  // namespace systole
