#pragma once
// Collective and transfer nodes bound to addresses, for devices that run kernel by kernel in host memory. A collective
// runs through the communicator; with one part it is a copy and needs none.

#include <memory>

#include "execute/runtime/communicator.h"
#include "execute/runtime/flatten.h"

namespace systole {

class CollectiveKernel {
 public:
  // `call` is a collective; its offsets are relative to `memory`. The communicator must outlive the kernel.
  // Errors: of Communicator::prepare; unsupported for more than one part without a communicator.
  static Result<CollectiveKernel> make(Communicator* communicator, const KernelCall& call, std::byte* memory);

  // Counts bytes_sent alone. Errors: of Communicator::run.
  Status run(WorkCounters& counters) const;

  // Asynchronous run; the kernels between start() and finish() call Communicator::progress(). finish() waits for this
  // collective and all that were started before it.
  // REQUIRES: sends(), that is more than one part.
  bool sends() const { return prepared_ != nullptr; }
  Status start() const;
  Status finish(WorkCounters& counters) const;

 private:
  Communicator* communicator_ = nullptr;
  std::unique_ptr<PreparedCollective> prepared_;  // null: a copy
  const std::byte* from_ = nullptr;
  std::byte* into_ = nullptr;
  std::size_t bytes_ = 0;
};

// A transfer node bound to its address, for the same devices.
class TransferKernel {
 public:
  // Errors: of Communicator::prepare; unsupported without a communicator.
  static Result<TransferKernel> make(Communicator* communicator, const KernelCall& call, int microbatch,
                                     std::byte* memory);

  // Communicator::post. Whatever runs next and is no transfer must call finish_transfers() first.
  Status post(WorkCounters& counters) const { return communicator_->post(*prepared_, counters); }

 private:
  Communicator* communicator_ = nullptr;
  std::unique_ptr<PreparedTransfer> prepared_;
};

}  // namespace systole
