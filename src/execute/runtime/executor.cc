#include "execute/runtime/executor.h"

#include <algorithm>
#include <map>

#include "execute/runtime/arena_memory.h"

namespace systole {
namespace {

class Failed : public DeviceEvent::Pending {
 public:
  explicit Failed(Error error) : error_(std::move(error)) {}
  Status wait() override { return error_; }

 private:
  Error error_;
};

// A server's cache: one range for each layer, of which each sequence uses the same part.
std::vector<MemoryRange> cache_ranges(const Program& program) {
  std::vector<MemoryRange> ranges;
  for (const ProgramValue& value : program.values) {
    if (value.residence != Residence::cache || value.type.num_elements() == 0) continue;
    const std::int64_t layers = value.type.shape.empty() ? 1 : value.type.shape[0];
    const std::int64_t each = value.type.bytes().count() / layers;
    for (int slot = 0; slot < value.slots; ++slot) {
      for (std::int64_t layer = 0; layer < layers; ++layer)
        ranges.push_back({value.offset + slot * value.stride + layer * each, each});
    }
  }
  return ranges;
}

// True for the last of consecutive actions on the network stream.
bool ends_transfers(const Schedule& schedule, std::size_t a) {
  const auto on_network = [&](std::size_t i) {
    return i < schedule.actions.size() && schedule.actions[i].stream == Stream::network;
  };
  return on_network(a) && !on_network(a + 1);
}

}  // namespace

DeviceEvent DeviceEvent::failed(Error error) { return DeviceEvent(std::make_shared<Failed>(std::move(error))); }

Result<std::unique_ptr<Executor>> Executor::create(const Program& program, Device& device) {
  std::unique_ptr<Executor> executor = TRY(prepare(program, device));
  TRY(executor->start());
  return executor;
}

Result<std::unique_ptr<Executor>> Executor::prepare(const Program& program, Device& device) {
  std::unique_ptr<Executor> executor(new Executor(program, device));  // the constructor is private
  for (const Function& function : program.functions)
    executor->executables_.push_back(TRY(device.compile_of(program, function)));
  return executor;
}

SlotAddress Executor::address_of(int value, int slot) const {
  const ProgramValue& v = program_.values[static_cast<std::size_t>(value)];
  CHECK(slot >= 0 && slot < v.slots, "slot {} of '{}', which has {}", slot, v.name, v.slots);
  return {value, slot, v.offset + slot * v.stride, &v.type};
}

std::vector<SlotAddress> Executor::addresses(const std::vector<Port>& ports, const Action& action) const {
  std::vector<SlotAddress> list;
  for (const Port& port : ports) list.push_back(address_of(port.value, slot_of(program_, port, action)));
  return list;
}

Status Executor::start() {
  CHECK(memory_ == nullptr, "the executor of '{}' was started already", program_.name);
  // Only where the host has the memory does the first use of a page make it resident.
  const bool on_host = dynamic_cast<const HostDevice*>(&device_) != nullptr;
  memory_ = TRY(on_host ? HostDevice::allocate_with(program_.arena, cache_ranges(program_))
                        : device_.allocate(program_.arena));
  std::map<std::vector<int>, Call*> bound;  // function, microbatch, values and slots → call, shared by equal actions
  for (const Schedule& schedule : program_.schedules) {
    BoundSchedule entry{&schedule, {}};
    for (const Action& action : schedule.actions) {
      const auto f = static_cast<std::size_t>(action.function);
      const Function& function = program_.functions[f];
      // Transfers to another stage carry their microbatch.
      const int microbatch = action.stream == Stream::network ? action.microbatch : 0;
      std::vector<int> key{action.function, microbatch};
      const std::vector<SlotAddress> inputs = addresses(function.inputs, action),
                                     outputs = addresses(function.outputs, action);
      for (const auto* list : {&inputs, &outputs}) {
        for (const SlotAddress& address : *list) key.insert(key.end(), {address.value, address.slot});
      }
      Call*& call = bound[key];
      if (call == nullptr) {
        calls_.push_back(TRY(
            device_.bind(*executables_[f], *memory_, Addresses{inputs, outputs, function.scratch_offset, microbatch})));
        call = calls_.back().get();
      }
      entry.calls.push_back(call);
    }
    schedules_.push_back(std::move(entry));
  }
  return {};
}

Status Executor::write(int value, int slot, std::span<const std::byte> bytes) {
  const Bytes size = program_.values[static_cast<std::size_t>(value)].type.bytes();
  CHECK(static_cast<std::int64_t>(bytes.size()) == size.count(), "{} bytes for '{}', which has {}", bytes.size(),
        program_.values[static_cast<std::size_t>(value)].name, size.count());
  return device_.copy_in(*memory_, address_of(value, slot), bytes).wait();
}

Status Executor::read(int value, int slot, std::span<std::byte> into) {
  const Bytes size = program_.values[static_cast<std::size_t>(value)].type.bytes();
  CHECK(static_cast<std::int64_t>(into.size()) == size.count(), "{} bytes of '{}', which has {}", into.size(),
        program_.values[static_cast<std::size_t>(value)].name, size.count());
  return device_.copy_out(*memory_, address_of(value, slot), into).wait();
}

std::span<std::byte> Executor::view(int value, int slot) {
  std::byte* host = memory_->host();
  if (host == nullptr) return {};
  const Bytes size = program_.values[static_cast<std::size_t>(value)].type.bytes();
  return {host + address_of(value, slot).offset, static_cast<std::size_t>(size.count())};
}

Status Executor::run(const Schedule& schedule, ActionObserver* observer, ActionRange range, WorkCounters* elsewhere) {
  for (const BoundSchedule& entry : schedules_) {
    if (entry.schedule != &schedule) continue;
    for (std::size_t a = range.first; a < std::min(range.last, schedule.actions.size()); ++a) {
      const Action& action = schedule.actions[a];
      const auto f = static_cast<std::size_t>(action.function);
      if (observer != nullptr) observer->begin(action, program_.functions[f]);
      Status done = device_.run(*entry.calls[a], elsewhere != nullptr ? *elsewhere : counters_[f]).wait();
      if (done.ok() && ends_transfers(schedule, a)) done = device_.finish_transfers();
      if (observer != nullptr) observer->end(action, program_.functions[f]);
      if (!done.ok()) return done;
    }
    return {};
  }
  CHECK(false, "schedule '{}' is not of this program", schedule.name);
  return {};
}

void Executor::start_run(const Schedule& schedule, ActionObserver* observer, std::vector<StartedAction>& started) {
  CHECK(device_.runs_ahead(), "{} does not run ahead", device_.target().name);
  const auto entry = std::find_if(schedules_.begin(), schedules_.end(),
                                  [&](const BoundSchedule& bound) { return bound.schedule == &schedule; });
  CHECK(entry != schedules_.end(), "schedule '{}' is not of this program", schedule.name);
  for (const Action& action : schedule.actions) CHECK(action.stream != Stream::network, "transfers are not run ahead");
  for (std::size_t a = 0; a < schedule.actions.size(); ++a) {
    const auto f = static_cast<std::size_t>(schedule.actions[a].function);
    const Function& function = program_.functions[f];
    if (observer != nullptr) observer->begin(schedule.actions[a], function);
    started.push_back({&function, device_.run(*entry->calls[a], counters_[f])});
    if (observer != nullptr) observer->end(schedule.actions[a], function);
  }
}

Status Executor::wait(std::vector<StartedAction>& started, ActionObserver* observer) {
  Status first;
  for (StartedAction& action : started) {
    if (observer != nullptr) observer->begin_wait(*action.function);
    Status done = action.done.wait();
    if (observer != nullptr) observer->end_wait();
    if (first.ok()) first = std::move(done);
  }
  started.clear();
  return first;
}

DeviceEvent Executor::read_later(int value, int slot, std::span<std::byte> into) {
  return device_.copy_out(*memory_, address_of(value, slot), into);
}

Status Executor::look(const Schedule& schedule, ActionRange range, KernelObserver& observer, ActionObserver* actions) {
  // Consecutive transfers are one exchange; received values are complete only at its end.
  for (const Action& action : schedule.actions) {
    if (action.stream == Stream::network)
      return error(ErrorKind::unsupported, "a stage of a pipeline is not looked at kernel by kernel yet");
  }
  if (!device_.observe(&observer))
    return error(ErrorKind::unsupported, "{} does not run kernel by kernel", device_.target().name);
  const auto one = [&](const Action& action) -> Status {
    const auto f = static_cast<std::size_t>(action.function);
    const Function& function = program_.functions[f];
    const std::vector<SlotAddress> inputs = addresses(function.inputs, action),
                                   outputs = addresses(function.outputs, action);
    const std::unique_ptr<Call> call =
        TRY(device_.bind(*executables_[f], *memory_, Addresses{inputs, outputs, function.scratch_offset}));
    WorkCounters not_counted;
    if (actions != nullptr) actions->begin(action, function);
    Status done = device_.run(*call, not_counted).wait();
    if (actions != nullptr) actions->end(action, function);
    return done;
  };
  Status done;
  for (std::size_t a = range.first; done.ok() && a < std::min(range.last, schedule.actions.size()); ++a)
    done = one(schedule.actions[a]);
  device_.observe(nullptr);
  return done;
}

}  // namespace systole
