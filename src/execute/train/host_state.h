#pragma once
// Host copies of parameters and optimizer state, for a device whose memory the host cannot access. Checkpoints are
// written from them. They replace the Program's "snapshot" schedule, which copies within the arena.

#include <span>
#include <vector>

#include "execute/runtime/executor.h"

namespace systole {

class HostState {
 public:
  // Allocates the size of parameters and state, unless the host can access the memory.
  explicit HostState(Executor& executor);

  bool is_needed() const { return !values_.empty(); }
  // Copies all and waits. Does nothing where no copy is needed. Errors: of the device.
  Status take();
  // The copy of a value's slot 0; empty where no copy is needed.
  std::span<std::byte> of(int value);

 private:
  Executor& executor_;
  std::vector<std::vector<std::byte>> values_;  // per value of the Program; empty: not kept
};

}  // namespace systole
