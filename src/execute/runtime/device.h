#pragma once
// A device, as the executor sees it. It takes functions, not ops: reference and cpu turn a function into a flat list of
// resolved kernel calls, xla into one module, null into nothing (PJRT's shape, and IREE's HAL's).
//
// Memory is addressed by slots of the Program's values. reference and cpu have the one arena that the Program planned
// and go by the slot's offset in it; a device with buffers of its own, of a type and shape each, goes by value and
// slot.

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "describe/graph/program.h"
#include "execute/runtime/counters.h"
#include "ground/base/result.h"

namespace systole {

class Communicator;  // communicator.h

class Memory {
 public:
  virtual ~Memory() = default;
  virtual Bytes size() const = 0;
  virtual std::byte* host() = 0;  // where the host sees it; nullptr when it cannot
};

// The end of something that was started. A default DeviceEvent has ended well. Failures are kept and given at the wait.
class DeviceEvent {
 public:
  // Of what has failed already.
  static DeviceEvent failed(Error error);
  class Pending {
   public:
    virtual ~Pending() = default;
    virtual Status wait() = 0;
  };
  DeviceEvent() = default;
  explicit DeviceEvent(std::shared_ptr<Pending> pending) : pending_(std::move(pending)) {}
  Status wait() { return pending_ == nullptr ? Status() : pending_->wait(); }

 private:
  std::shared_ptr<Pending> pending_;
};

class Executable {
 public:
  virtual ~Executable() = default;
};

// An Executable with its addresses: what a step runs again and again.
class Call {
 public:
  virtual ~Call() = default;
};

// One slot of a value of the Program, and where it lies. The type is the Program's and lives as long as it.
struct SlotAddress {
  int value = -1, slot = 0;
  std::int64_t offset = 0;  // in the memory
  const Type* type = nullptr;
};

// The time that the kernels of one op took, in all calls of an executable.
struct OpTime {
  std::string op;
  std::int64_t calls = 0;
  Seconds time;
};

struct Addresses {
  std::span<const SlotAddress> inputs, outputs;  // per port
  std::int64_t scratch = 0;                      // offset in the memory
  int microbatch = 0;                            // that transfers say they are of
};

// One call of a kernel, as who watches it sees it; places are the host's.
struct SeenKernel {
  const Graph* graph = nullptr;  // that holds the node
  const GraphNode* node = nullptr;
  std::vector<std::int64_t> layers;  // the index of each repeat around it, outermost first
  std::vector<const std::byte*> operands, results;
};

class KernelObserver {
 public:
  virtual ~KernelObserver() = default;
  virtual void before(const SeenKernel& kernel) = 0;
  // Not ok: the call ends here, with this.
  virtual Status after(const SeenKernel& kernel) = 0;
};

class Device {
 public:
  virtual ~Device() = default;

  virtual const Target& target() const = 0;
  // Scratch that the kernel of a node needs, bytes; what `partition` asks and enters in the Target.
  virtual Bytes workspace(const Graph& graph, const GraphNode& node) const = 0;

  // Errors: does_not_fit.
  virtual Result<std::unique_ptr<Memory>> allocate(Bytes bytes) = 0;
  // Whether memory is the host's too (Memory::host()); if not, what is saved of it is copied first.
  virtual bool host_sees_memory() const { return true; }
  // The bytes are the slot's, row-major, all of them.
  virtual DeviceEvent copy_in(Memory& memory, const SlotAddress& to, std::span<const std::byte> from) = 0;
  virtual DeviceEvent copy_out(Memory& memory, const SlotAddress& from, std::span<std::byte> into) = 0;

  // Errors: unsupported, naming each op and type that the device cannot run.
  virtual Result<std::unique_ptr<Executable>> compile(const Function& function) = 0;
  // The same of a function of `program`, for a device that is compiled for together with the others of a mesh.
  virtual Result<std::unique_ptr<Executable>> compile_of(const Program&, const Function& function) {
    return compile(function);
  }
  virtual Result<std::unique_ptr<Call>> bind(const Executable& executable, Memory& memory,
                                             const Addresses& addresses) = 0;
  // Runs; adds to `counters` by the time the event has ended. Allocates nothing of ours.
  virtual DeviceEvent run(Call& call, WorkCounters& counters) = 0;

  // Who carries out the collectives of what is bound from now on; it must outlive the calls. Null, as at the beginning:
  // nobody, so a collective of more than one part is refused at bind (unsupported), and one of one part is a copy.
  virtual void connect(Communicator*) {}

  // Ends the transfers between stages that were run before (Stream::network): those that follow each other are under
  // way at once, so none has ended when `run` returns. Errors: of the communicator.
  virtual Status finish_transfers() { return {}; }

  // Tells of every kernel of what is bound from now on; null: of none. False: this device cannot.
  virtual bool observe(KernelObserver*) { return false; }

  // Per op of the executable; empty where the device cannot tell.
  virtual std::vector<OpTime> op_times(const Executable&) const { return {}; }

  // Of each function that was compiled, by its name, a hash of what it was compiled to: where that may be another each
  // time it is compiled, and bits depend on it.
  virtual std::map<std::string, std::string> executables() const { return {}; }

  // What served each class of ops ("contract: oneDNN 2.6.3 jit:avx512_core_bf16"), for people; a fallback is named.
  virtual std::vector<std::string> kernels_used() const { return {}; }

  // Whether `run` returns before the work is done, and what is asked for meanwhile, copies too, comes after it, with
  // the values that it had then. If not, all that is asked for is done when the call returns.
  virtual bool runs_ahead() const { return false; }
};

}  // namespace systole
