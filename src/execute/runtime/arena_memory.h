#pragma once
// The arena of a host device: one anonymous mapping, resident from the start. So a run uses the memory that was
// planned, and a lack of memory shows before the first step. A server's cache, often most of its memory, is mapped and
// becomes resident beside the load and the first requests (Memory::begin_fill), so that it delays neither.

#include <memory>
#include <span>

#include "execute/runtime/device.h"

namespace systole {

struct MemoryRange {
  std::int64_t offset = 0, size = 0;
};

class ArenaMemory : public Memory {
 public:
  // Makes resident, in the background, what was left for later; use does not wait for it.
  virtual void begin_fill() = 0;
};

// Of `later`, whole huge pages are left for begin_fill or their first use, and are zero until then: the first bytes of
// all ranges before the next of any. Errors: does_not_fit if the system lacks the memory. REQUIRES: `later` lies within
// the arena.
Result<std::unique_ptr<ArenaMemory>> allocate_arena(Bytes bytes, std::span<const MemoryRange> later = {});

// A device whose kernels run in this process, over such an arena, and are done when a call returns.
class HostDevice : public Device {
 public:
  const Target& target() const override { return target_; }
  Result<std::unique_ptr<Memory>> allocate(Bytes bytes) override { return allocate_with(bytes, {}); }
  // The same; `later` becomes resident in the background.
  static Result<std::unique_ptr<Memory>> allocate_with(Bytes bytes, std::span<const MemoryRange> later);
  DeviceEvent copy_in(Memory& memory, const SlotAddress& to, std::span<const std::byte> from) override;
  DeviceEvent copy_out(Memory& memory, const SlotAddress& from, std::span<std::byte> into) override;
  void connect(Communicator* communicator) override { communicator_ = communicator; }
  Status finish_transfers() override;
  bool observe(KernelObserver* observer) override {
    observer_ = observer;
    return true;
  }

 protected:
  Target target_;
  KernelObserver* observer_ = nullptr;
  Communicator* communicator_ = nullptr;
};

}  // namespace systole
