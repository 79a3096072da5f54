#pragma once
// Parameters and optimizer state of a device whose memory the host does not see, copied to where checkpoints can be
// written from. It stands in the place of the Program's "snapshot" schedule, which copies within the arena.

#include <span>
#include <vector>

#include "execute/runtime/executor.h"

namespace systole {

class HostState {
 public:
  // Allocates as much as parameters and state have, unless the host sees the memory.
  explicit HostState(Executor& executor);

  bool is_needed() const { return !values_.empty(); }
  // Waits until all is there. Nothing to do where it is not needed. Errors: of the device.
  Status take();
  // Of a value's slot 0; empty where it is not needed.
  std::span<std::byte> of(int value);

 private:
  Executor& executor_;
  std::vector<std::vector<std::byte>> values_;  // per value of the Program; of those that are not kept: empty
};

}  // namespace systole
