#pragma once
// Runs a Program on a Device: compiles its functions, allocates its arena, binds every action, and runs schedules.
// After creation a schedule allocates nothing.
//
// The actions of a device run in list order, which respects every wait (the verifier proves that waits point back).
// Thread safety: one thread at a time.

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "execute/runtime/device.h"

namespace systole {

// Called around each action; must allocate nothing.
class ActionObserver {
 public:
  virtual ~ActionObserver() = default;
  virtual void begin(const Action& action, const Function& function) = 0;
  virtual void end(const Action& action, const Function& function) = 0;
  // Around the wait for an action of start_run.
  virtual void begin_wait(const Function&) {}
  virtual void end_wait() {}
};

// The actions [first, last) of a schedule.
struct ActionRange {
  std::size_t first = 0, last = static_cast<std::size_t>(-1);
};

// An action that was started and may still be running.
struct StartedAction {
  const Function* function = nullptr;
  DeviceEvent done;
};

class Executor {
 public:
  // The Program must have been planned for the device's Target; both must outlive the executor.
  // Errors: unsupported (an op or type the device cannot run), does_not_fit.
  static Result<std::unique_ptr<Executor>> create(const Program& program, Device& device);
  // create() in two steps: prepare() compiles and allocates nothing; start() allocates the arena and binds.
  static Result<std::unique_ptr<Executor>> prepare(const Program& program, Device& device);
  Status start();

  // Copies between the host and a slot of a value; bytes are the type's, row-major. Errors: of the device.
  Status write(int value, int slot, std::span<const std::byte> bytes);
  Status read(int value, int slot, std::span<std::byte> into);
  // The host's view of a slot; empty if the host cannot access the device's memory.
  std::span<std::byte> view(int value, int slot);

  // `elsewhere` receives the counts of this run; null: they are added to counters().
  Status run(const Schedule& schedule, ActionObserver* observer = nullptr, ActionRange range = {},
             WorkCounters* elsewhere = nullptr);
  // Asynchronous run. start_run() starts all actions; wait() returns their errors. Reads between the two are ordered
  // after the actions started before them.
  // REQUIRES: the device runs ahead.
  void start_run(const Schedule& schedule, ActionObserver* observer, std::vector<StartedAction>& started);
  Status wait(std::vector<StartedAction>& started, ActionObserver* observer);  // leaves it empty
  // As read(), ordered after all that has been started; `into` must stay until the event.
  DeviceEvent read_later(int value, int slot, std::span<std::byte> into);

  // Runs these actions once more and observes every kernel. Slow, and it allocates; the work is not counted.
  // Errors: of the observer; unsupported if the device cannot.
  Status look(const Schedule& schedule, ActionRange range, KernelObserver& observer, ActionObserver* actions = nullptr);

  // Per function of the Program: totals of all its calls so far.
  const std::vector<WorkCounters>& counters() const { return counters_; }
  // Per op of a function of the Program: the time of its kernels so far; empty if the device does not measure it.
  std::vector<OpTime> op_times(int function) const {
    return device_.op_times(*executables_[static_cast<std::size_t>(function)]);
  }
  const Program& program() const { return program_; }
  Device& device() { return device_; }
  Bytes arena() const { return memory_->size(); }

 private:
  Executor(const Program& program, Device& device)
      : program_(program), device_(device), counters_(program.functions.size()) {}
  SlotAddress address_of(int value, int slot) const;
  std::vector<SlotAddress> addresses(const std::vector<Port>& ports, const Action& action) const;

  struct BoundSchedule {
    const Schedule* schedule;
    std::vector<Call*> calls;  // per action
  };

  const Program& program_;
  Device& device_;
  std::unique_ptr<Memory> memory_;
  std::vector<std::unique_ptr<Executable>> executables_;  // per function
  std::vector<std::unique_ptr<Call>> calls_;
  std::vector<BoundSchedule> schedules_;
  std::vector<WorkCounters> counters_;
};

}  // namespace systole
