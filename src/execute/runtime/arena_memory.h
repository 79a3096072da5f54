#pragma once
// The arena of a host device: one anonymous mapping, resident from the start. So a run uses the memory that was
// planned, and a lack of memory shows before the first step.

#include <memory>

#include "execute/runtime/device.h"

namespace systole {

// Errors: does_not_fit if the system lacks the memory.
Result<std::unique_ptr<Memory>> allocate_arena(Bytes bytes);

// A device whose kernels run in this process, over such an arena, and are done when a call returns.
class HostDevice : public Device {
 public:
  const Target& target() const override { return target_; }
  Result<std::unique_ptr<Memory>> allocate(Bytes bytes) override { return allocate_arena(bytes); }
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
