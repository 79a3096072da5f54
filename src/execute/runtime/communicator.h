#pragma once
// Runs the collectives of a graph for a device. All ranks of a mesh hold equal Programs; each rank has one
// Communicator. The device prepares each collective node once, with its addresses, and then runs it like a kernel.
//
// Thread safety: one thread at a time; abort() from any.

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "describe/program/collective_call.h"
#include "execute/runtime/counters.h"
#include "ground/base/result.h"

namespace systole {

// Scratch of a collective while it runs, in bytes, aligned to 64. The arena holds it; a run allocates nothing. It
// depends on the call alone:
//   sums of bf16 and f16         this rank's part in f32
//   reduce_scatter, not direct   the whole operand, which the algorithm overwrites
//   all others                   none: parts along any dim are sent and placed row by row
// One part needs none: it is a copy.
Bytes collective_workspace(const CollectiveCall& call);

// A collective with its addresses. It belongs to the communicator that made it and must not outlive it.
class PreparedCollective {
 public:
  virtual ~PreparedCollective() = default;
};

// A transfer with its address. It belongs to the communicator that made it and must not outlive it.
class PreparedTransfer {
 public:
  virtual ~PreparedTransfer() = default;
};

// One run of a collective, for observers. (call.axis, sequence) is the same on every rank of its group; the rank that
// begins last is the straggler.
struct ObservedCollective {
  const CollectiveCall* call = nullptr;
  std::uint32_t sequence = 0;  // counts the collectives over the same axes, from 0
};

// Called at the beginning and end of each run; must allocate nothing.
class CollectiveObserver {
 public:
  virtual ~CollectiveObserver() = default;
  virtual void begin(const ObservedCollective& collective) = 0;
  virtual void end(const ObservedCollective& collective, bool ok, Bytes sent) = 0;
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual std::int32_t rank() const = 0;
  virtual std::int32_t num_ranks() const = 0;

  // `from` holds the operand, `into` gets the result. They must not overlap, except that all_reduce may work in place.
  // `workspace` has collective_workspace(call) bytes. The operand keeps its value unless the result replaces it. Sends
  // nothing.
  // Errors: not_found (the mesh lacks an axis); invalid (its sizes do not give `parts`); unsupported (the algorithm
  // does not implement the kind, or would round a sum of bf16 or f16 more than once; a dtype without sums).
  virtual Result<std::unique_ptr<PreparedCollective>> prepare(const CollectiveCall& call, const std::byte* from,
                                                              std::byte* into, std::byte* workspace) = 0;

  // All ranks of the group must run it, in the same order among the group's collectives. Adds the bytes that the
  // transport wrote to `counters.bytes_sent`; other counters are the caller's. Allocates nothing.
  // Errors: of the transport; afterwards no rank of it can go on.
  virtual Status run(PreparedCollective& collective, WorkCounters& counters) = 0;

  // Asynchronous run. start() queues a collective behind those started before. progress() advances the queue as far as
  // possible without waiting; there is no background thread, so call it now and then, between kernels. finish() waits
  // for one collective and all that were started before it; null: for all. Collectives of all groups end in start
  // order, so all ranks must start them in one order. Operands and results must stay until the collective has ended,
  // and it must have ended before it is started again. progress() is nearly free when the queue is empty.
  virtual Status start(PreparedCollective& collective) = 0;
  virtual Status progress() = 0;
  virtual Status finish(PreparedCollective* collective, WorkCounters& counters) = 0;

  // Transfers between pipeline stages. `at` holds what is sent, or gets what is received. A message carries its value,
  // type, microbatch and number among the transfers between the two ranks; the receiver refuses it if it expects
  // another. Sends nothing.
  // Errors: not_found (the mesh lacks the axis).
  virtual Result<std::unique_ptr<PreparedTransfer>> prepare(const TransferCall& call, std::byte* at) = 0;

  // Consecutive posted transfers run at once, unless one writes what an earlier one touches, or reads what an earlier
  // one writes: then it comes after it. Between two ranks transfers arrive in the order in which they were sent. They
  // run and end in finish_transfers(), which must be called before anything else runs. Each adds its written bytes to
  // the counters that it was posted with; these must live until then. Allocates nothing.
  virtual Status post(PreparedTransfer& transfer, WorkCounters& counters) = 0;
  virtual Status finish_transfers() = 0;

  // Observes every run from now on; null: stops. The observer must outlive that.
  virtual void observe(CollectiveObserver* observer) = 0;

  // Broadcasts a few bytes of the host from `root`; all ranks pass the same size. Not counted as work.
  virtual Status broadcast(std::span<std::byte> bytes, std::int32_t root) = 0;
  // Returns when all ranks have called it.
  virtual Status barrier() = 0;

  // Ends the running and all later operations, here and on the peers, with an error of kind interrupted that carries
  // `why`.
  virtual void abort(const std::string& why) = 0;
};

}  // namespace systole
