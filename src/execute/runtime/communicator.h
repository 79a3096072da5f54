#pragma once
// What a device needs to run the collectives of a graph: ranks that hold equal Programs meet here. The device prepares
// each collective node once, with its addresses, and runs it as it runs a kernel.
//
// Thread safety: one thread at a time; abort() from any.

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "describe/graph/collective_call.h"
#include "execute/runtime/counters.h"
#include "ground/base/result.h"

namespace systole {

// Scratch that a collective needs while it runs, bytes, aligned to 64; the arena holds it, nothing is allocated then. A
// function of the call alone:
//   sums of bf16 and f16      the own part in f32
//   reduce_scatter, not direct   the whole operand, which is spent on the way
//   all others                none: parts along any dim are sent and placed row by row
// One part needs none: it is a copy.
Bytes collective_workspace(const CollectiveCall& call);

// A collective with its addresses; belongs to the communicator that made it and must not outlive it.
class PreparedCollective {
 public:
  virtual ~PreparedCollective() = default;
};

// A transfer with its address; belongs to the communicator that made it and must not outlive it.
class PreparedTransfer {
 public:
  virtual ~PreparedTransfer() = default;
};

// One run of a collective, as who watches it sees it. (call.axis, sequence) is the same on every rank of its group: the
// rank whose begin comes last is the one that the others waited for.
struct SeenCollective {
  const CollectiveCall* call = nullptr;
  std::uint32_t sequence = 0;  // among those over the same axes, from 0
};

// Told of each run at its beginning and end; the calls must allocate nothing.
class CollectiveObserver {
 public:
  virtual ~CollectiveObserver() = default;
  virtual void begin(const SeenCollective& collective) = 0;
  virtual void end(const SeenCollective& collective, bool ok, Bytes sent) = 0;
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual std::int32_t rank() const = 0;
  virtual std::int32_t num_ranks() const = 0;

  // `from` holds the operand, `into` gets the result; they may be the same place for all_reduce alone, and must not
  // overlap otherwise. `workspace` has collective_workspace(call) bytes. The operand keeps its value unless it is the
  // result's place. Sends nothing.
  // Errors: not_found (the mesh lacks an axis); invalid (its sizes do not give `parts`); unsupported (an algorithm that
  // does not carry out the kind, or that would round a sum of bf16 or f16 more than once; a dtype without sums).
  virtual Result<std::unique_ptr<PreparedCollective>> prepare(const CollectiveCall& call, const std::byte* from,
                                                              std::byte* into, std::byte* workspace) = 0;

  // All ranks of the group must run it, in the same order among the collectives of the group. Adds to
  // `counters.bytes_sent` what the transport wrote; other counters are the caller's. Allocates nothing.
  // Errors: of the transport; none of its ranks can go on then.
  virtual Status run(PreparedCollective& collective, WorkCounters& counters) = 0;

  // The same beside other work. start() begins it, behind those that were started before, and progress() moves on with
  // them as far as can be without waiting: nobody else does it, so it is called now and then, between kernels.
  // finish() waits for one and all that were started before it; for all of them with null. Those over all groups end
  // in the order in which they were started, so ranks start them in one order. What it works on must stay until it has
  // ended, and it must have ended before it is started again. progress() costs next to nothing when none is under way.
  virtual Status start(PreparedCollective& collective) = 0;
  virtual Status progress() = 0;
  virtual Status finish(PreparedCollective* collective, WorkCounters& counters) = 0;

  // Between the stages of a pipeline. `at` holds what is sent, or gets what is received. What is sent says its value,
  // type, microbatch and number among those between the two, and is refused where another is expected. Sends nothing.
  // Errors: not_found (the mesh lacks the axis).
  virtual Result<std::unique_ptr<PreparedTransfer>> prepare(const TransferCall& call, std::byte* at) = 0;

  // Transfers that are posted one after the other are under way at once; those that touch a place which one before them
  // writes, or write what it reads, come after it. What is sent first to a rank is received first there. They move and
  // end in finish_transfers(), which whoever runs anything else calls first; each adds what the transport wrote for it
  // to the counters that it was posted with, which must live until then. Allocates nothing.
  virtual Status post(PreparedTransfer& transfer, WorkCounters& counters) = 0;
  virtual Status finish_transfers() = 0;

  // Tells of every run from now on; null: of none. The observer must outlive that.
  virtual void observe(CollectiveObserver* observer) = 0;

  // A few bytes of the host, the same number on every rank: those of `root` on all of them. Not counted as work.
  virtual Status broadcast(std::span<std::byte> bytes, std::int32_t root) = 0;
  // Returns when all ranks have come.
  virtual Status barrier() = 0;

  // Ends what runs and all that follows, here and on the peers, with an error of kind interrupted that carries `why`.
  virtual void abort(const std::string& why) = 0;
};

}  // namespace systole
