#pragma once
// Replay check: recomputes a step's gradients from the same inputs and compares the bits. It detects a bit flip in
// memory or a wrong result of a processor, on the rank where it happened, before gradients are reduced and used.
//
// Cost: at checked steps, one more forward and backward and two reads of the gradients; 8 bytes of memory per gradient.
// The schedule must give the same bits in every run, as it does for one numerics fingerprint.

#include <cstdint>
#include <functional>
#include <vector>

#include "execute/runtime/executor.h"

namespace systole {

class ReplayCheck {
 public:
  // `train` is a schedule of the executor's Program.
  ReplayCheck(Executor& executor, const Schedule& train);

  // The actions that compute gradients, before those of "reduce" and "update".
  ActionRange of_gradients() const { return {0, end_}; }
  ActionRange after_gradients() const { return {end_}; }

  // Runs of_gradients() again. REQUIRES: they have run. Errors: corrupt, naming the first gradient with different bits.
  Status compare(std::int64_t step, ActionObserver* observer);

  // True if an error is from compare(): then the rank is to blame, not the run.
  static bool found(const Error& error);

  // The number of gradients that exist between compute and use, for fault injection; 0 if a step is one function. In
  // exact training each gradient has several, one per slot: sums of logical shards.
  std::size_t num_gradients() const { return gradients_.size(); }
  // Changes the nth gradient by `how`. Errors: of the device. REQUIRES: nth < num_gradients().
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
  std::vector<std::byte> copy_;  // if the host cannot access the device's memory
};

}  // namespace systole
