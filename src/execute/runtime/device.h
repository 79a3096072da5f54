#pragma once
// The device interface of the executor. A device takes functions, not ops: reference and cpu turn a function into a
// flat list of resolved kernel calls, xla into one module, null into nothing (the shape of PJRT and of IREE's HAL).
//
// Memory is addressed by slots of the Program's values. reference and cpu have the one arena that the Program planned
// and use the slot's offset in it. A device with typed, shaped buffers of its own uses value and slot.

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "describe/program/program.h"
#include "execute/runtime/counters.h"
#include "ground/base/result.h"

namespace systole {

class Communicator;  // communicator.h

class Memory {
 public:
  virtual ~Memory() = default;
  virtual Bytes size() const = 0;
  virtual std::byte* host() = 0;  // host address; nullptr if the host cannot access it
};

// Completion of an asynchronous operation. A default DeviceEvent has completed without error. Failures are kept and
// returned by wait().
class DeviceEvent {
 public:
  // An event that has already failed.
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

// An Executable bound to addresses; a step runs it again and again.
class Call {
 public:
  virtual ~Call() = default;
};

// A slot of a Program value and its address. The Program owns the type.
struct SlotAddress {
  int value = -1, slot = 0;
  std::int64_t offset = 0;  // in the memory
  const Type* type = nullptr;
};

// Total time of the kernels of one op, over all calls of an executable.
struct OpTime {
  std::string op;
  std::int64_t calls = 0;
  Seconds time;
};

struct Addresses {
  std::span<const SlotAddress> inputs, outputs;  // per port
  std::int64_t scratch = 0;                      // offset in the memory
  int microbatch = 0;                            // stamped on transfers
};

// One kernel call, for observers; the pointers are host addresses.
struct ObservedKernel {
  const Graph* graph = nullptr;  // contains the node
  const GraphNode* node = nullptr;
  std::vector<std::int64_t> layers;  // index in each enclosing repeat, outermost first
  std::vector<const std::byte*> operands, results;
};

class KernelObserver {
 public:
  virtual ~KernelObserver() = default;
  virtual void before(const ObservedKernel& kernel) = 0;
  // An error ends the call and is its result.
  virtual Status after(const ObservedKernel& kernel) = 0;
};

class Device {
 public:
  virtual ~Device() = default;

  virtual const Target& target() const = 0;
  // Scratch of a node's kernel, in bytes; `partition` asks for it and enters it in the Target.
  virtual Bytes workspace(const Graph& graph, const GraphNode& node) const = 0;

  // Errors: does_not_fit.
  virtual Result<std::unique_ptr<Memory>> allocate(Bytes bytes) = 0;
  // True if the host can access device memory (Memory::host()). If not, saving copies it first.
  virtual bool host_sees_memory() const { return true; }
  // `from` and `into` are the whole slot, row-major.
  virtual DeviceEvent copy_in(Memory& memory, const SlotAddress& to, std::span<const std::byte> from) = 0;
  virtual DeviceEvent copy_out(Memory& memory, const SlotAddress& from, std::span<std::byte> into) = 0;

  // Errors: unsupported, naming each op and type that the device cannot run.
  virtual Result<std::unique_ptr<Executable>> compile(const Function& function) = 0;
  // As compile, for a function of `program`: a device that compiles for the whole mesh needs it.
  virtual Result<std::unique_ptr<Executable>> compile_of(const Program&, const Function& function) {
    return compile(function);
  }
  virtual Result<std::unique_ptr<Call>> bind(const Executable& executable, Memory& memory,
                                             const Addresses& addresses) = 0;
  // Runs; has added to `counters` when the event completes. Allocates nothing of ours.
  virtual DeviceEvent run(Call& call, WorkCounters& counters) = 0;

  // The communicator for collectives of calls bound from now on; it must outlive the calls. Null, the default: bind
  // refuses a collective of more than one part (unsupported); one of one part is a copy.
  virtual void connect(Communicator*) {}

  // Completes the pending transfers between stages (Stream::network). Consecutive transfers run at once, so none has
  // ended when `run` returns.
  // Errors: of the communicator.
  virtual Status finish_transfers() { return {}; }

  // Observes every kernel of calls bound from now on; null: stops. False: this device cannot.
  virtual bool observe(KernelObserver*) { return false; }

  // Per op of the executable; empty if the device does not measure it.
  virtual std::vector<OpTime> op_times(const Executable&) const { return {}; }

  // Hashes of the compiled code, by function name, for devices whose compiler may choose differently each time in ways
  // that change result bits.
  virtual std::map<std::string, std::string> executables() const { return {}; }

  // The library or kernel used for each class of ops ("contract: oneDNN 2.6.3 jit:avx512_core_bf16"), for people;
  // fallbacks are named.
  virtual std::vector<std::string> kernels_used() const { return {}; }

  // True if `run` is asynchronous: it may return before the work is done, and later requests, copies too, are ordered
  // after it and see its values. If false, every request is done when its call returns.
  virtual bool runs_ahead() const { return false; }
};

}  // namespace systole
