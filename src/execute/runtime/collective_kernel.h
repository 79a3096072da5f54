#pragma once
// A collective node with its addresses, as devices that run kernel by kernel on the host's memory run it: through the
// communicator, or, of one part, as a copy that needs none.

#include <memory>

#include "execute/runtime/communicator.h"
#include "execute/runtime/flatten.h"

namespace systole {

class CollectiveKernel {
 public:
  // `call` is a collective; `memory` is where its offsets count from. The communicator must outlive the kernel.
  // Errors: of Communicator::prepare; unsupported for more than one part without a communicator.
  static Result<CollectiveKernel> make(Communicator* communicator, const KernelCall& call, std::byte* memory);

  // Counts bytes_sent alone. Errors: of Communicator::run.
  Status run(WorkCounters& counters) const;

  // In two parts, what runs between them moving it on by progress(): Communicator's start, and its wait for this one
  // and all before it. REQUIRES of them: more than one part.
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

// A transfer node with its address, on such a device.
class TransferKernel {
 public:
  // Errors: of Communicator::prepare; unsupported without a communicator.
  static Result<TransferKernel> make(Communicator* communicator, const KernelCall& call, int microbatch,
                                     std::byte* memory);

  // Communicator's post. What runs on the device next, and is no transfer, calls finish_transfers() before.
  Status post(WorkCounters& counters) const { return communicator_->post(*prepared_, counters); }

 private:
  Communicator* communicator_ = nullptr;
  std::unique_ptr<PreparedTransfer> prepared_;
};

}  // namespace systole
