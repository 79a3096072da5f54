#pragma once
// Whether a step's gradients are what they should be: computed again from the same bytes they must be the same bits. A
// flipped bit in memory or in a processor's result is found so, on the rank where it happened, before the gradients are
// added to the others' and before the update.
//
// Cost: one more forward and backward, and twice reading the gradients, at the steps that are checked; 8 bytes of
// memory a gradient. The schedule must give the same bits at every run, as it does on one numerics fingerprint.

#include <cstdint>
#include <functional>
#include <vector>

#include "execute/runtime/executor.h"

namespace systole {

class ReplayCheck {
 public:
  // `train`: of the executor's Program.
  ReplayCheck(Executor& executor, const Schedule& train);

  // The actions that make gradients, before those of "reduce" and "update".
  ActionRange of_gradients() const { return {0, end_}; }
  ActionRange after_gradients() const { return {end_}; }

  // REQUIRES: they were run. Runs them again. Errors: corrupt, naming the first gradient whose bits are others.
  Status compare(std::int64_t step, ActionObserver* observer);

  // Whether an error is of compare(): the rank is to blame, and not the run.
  static bool found(const Error& error);

  // The gradients between their making and their use, for faults on purpose; none where a step is one function. An
  // exact step has several of each, a sum of logical shards in each slot.
  std::size_t num_gradients() const { return gradients_.size(); }
  // Errors: of the device. REQUIRES: nth < num_gradients().
  Status change(std::size_t nth, const std::function<void(std::span<std::byte>)>& how);

 private:
  struct Place {
    int value = -1, slot = 0;
  };
  std::uint64_t hash_of(const Place& place);
  Executor& executor_;
  const Schedule& train_;
  std::size_t end_ = 0;
  std::vector<Place> gradients_;
  std::vector<std::uint64_t> hashes_;
  std::vector<std::byte> copy_;  // where the host does not see the device's memory
};

}  // namespace systole
