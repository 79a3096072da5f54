#pragma once
// Runs a Program on a Device: compiles its functions, allocates its arena, binds every action, and plays schedules.
// After creation a schedule allocates nothing.
//
// Actions of one device run in the order of the list, which respects every wait (the verifier proves that waits point
// back). Thread safety: one thread at a time.

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "execute/runtime/device.h"

namespace systole {

// Told of each action; the calls must allocate nothing.
class ActionObserver {
 public:
  virtual ~ActionObserver() = default;
  virtual void begin(const Action& action, const Function& function) = 0;
  virtual void end(const Action& action, const Function& function) = 0;
  // Around the wait for an action that was started before (Executor::start_run).
  virtual void begin_wait(const Function&) {}
  virtual void end_wait() {}
};

// Of a schedule: the actions from `first` on, before `last`.
struct ActionRange {
  std::size_t first = 0, last = static_cast<std::size_t>(-1);
};

// An action that a device was asked for, and which may not be done.
struct StartedAction {
  const Function* function = nullptr;
  DeviceEvent done;
};

class Executor {
 public:
  // The Program must have been planned for the device's Target; both must outlive the executor.
  // Errors: unsupported (an op or type the device cannot run), does_not_fit.
  static Result<std::unique_ptr<Executor>> create(const Program& program, Device& device);
  // The same in two parts: compile, with nothing allocated yet; then allocate the arena and bind.
  static Result<std::unique_ptr<Executor>> prepare(const Program& program, Device& device);
  Status start();

  // Host access to a slot of a value: its bytes are the type's, row-major. Errors: of the device.
  Status write(int value, int slot, std::span<const std::byte> bytes);
  Status read(int value, int slot, std::span<std::byte> into);
  // Where the host sees a slot; empty when the device's memory is not the host's.
  std::span<std::byte> view(int value, int slot);

  // `elsewhere`: takes the counts of this run; null: they are the functions' own.
  Status run(const Schedule& schedule, ActionObserver* observer = nullptr, ActionRange range = {},
             WorkCounters* elsewhere = nullptr);
  // The same in two parts, REQUIRES: the device runs ahead. All actions are started, and waited for later, when errors
  // come out. What is started and read in between is done in that order.
  void start_run(const Schedule& schedule, ActionObserver* observer, std::vector<StartedAction>& started);
  Status wait(std::vector<StartedAction>& started, ActionObserver* observer);  // leaves it empty
  // As read(), of what has been started by now; `into` stays until the event.
  DeviceEvent read_later(int value, int slot, std::span<std::byte> into);

  // Runs these actions once more and tells of every kernel; slow, and it allocates. What they report is not counted.
  // Errors: of the observer; unsupported where the device cannot.
  Status look(const Schedule& schedule, ActionRange range, KernelObserver& observer, ActionObserver* actions = nullptr);

  // Per function of the Program: all that its calls have reported so far.
  const std::vector<WorkCounters>& counters() const { return counters_; }
  // Per op of a function of the Program: the time that its kernels took so far; empty where the device cannot tell.
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
