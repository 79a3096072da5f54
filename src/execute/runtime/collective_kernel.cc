#include "execute/runtime/collective_kernel.h"

#include <cstring>

namespace systole {

Result<CollectiveKernel> CollectiveKernel::make(Communicator* communicator, const KernelCall& call, std::byte* memory) {
  const CollectiveCall collective = collective_call(*call.graph, *call.node);
  CollectiveKernel kernel;
  kernel.from_ = memory + call.operands[0];
  kernel.into_ = memory + call.results[0];
  if (collective.parts == 1) {
    kernel.bytes_ = static_cast<std::size_t>(bytes_of(collective.dtype, collective.shape).count());
    return kernel;
  }
  if (communicator == nullptr) {
    return error(ErrorKind::unsupported, "{} over '{}' of {} parts on a device that is connected to no others",
                 name_of(collective.kind), collective.axis, collective.parts)
        .hinted("--ranks; or a mesh of one device");
  }
  std::byte* const workspace = call.workspace < 0 ? nullptr : memory + call.workspace;
  kernel.communicator_ = communicator;
  kernel.prepared_ = TRY(communicator->prepare(collective, kernel.from_, kernel.into_, workspace));
  return kernel;
}

Status CollectiveKernel::run(WorkCounters& counters) const {
  if (prepared_ != nullptr) return communicator_->run(*prepared_, counters);
  if (into_ != from_ && bytes_ > 0) std::memcpy(into_, from_, bytes_);
  return {};
}

Status CollectiveKernel::start() const { return communicator_->start(*prepared_); }

Status CollectiveKernel::finish(WorkCounters& counters) const {
  return communicator_->finish(prepared_.get(), counters);
}

Result<TransferKernel> TransferKernel::make(Communicator* communicator, const KernelCall& call, int microbatch,
                                            std::byte* memory) {
  TransferCall transfer = transfer_call(*call.graph, *call.node);
  transfer.microbatch = microbatch;
  if (communicator == nullptr) {
    return error(ErrorKind::unsupported, "{} over '{}' of {} parts on a device that is connected to no others",
                 call.node->op->name, transfer.axis, transfer.parts)
        .hinted("--ranks; or a mesh of one device");
  }
  TransferKernel kernel;
  kernel.communicator_ = communicator;
  kernel.prepared_ = TRY(communicator->prepare(transfer, memory + call.results[0]));
  return kernel;
}

}  // namespace systole
