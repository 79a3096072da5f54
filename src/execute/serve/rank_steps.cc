#include "execute/serve/rank_steps.h"

#include <algorithm>
#include <chrono>

namespace systole {
namespace {

constexpr std::int32_t kBeat = -1, kEnd = -2;

// The inputs that a step's host writes. REQUIRES: the host sees the device's memory.
std::vector<std::span<std::byte>> inputs_of(Executor& executor, const Schedule& schedule) {
  const Program& program = executor.program();
  const Function& function = program.functions[static_cast<std::size_t>(schedule.actions[0].function)];
  std::vector<std::span<std::byte>> inputs;
  for (const Port& port : function.inputs) {
    const ProgramValue& value = program.values[static_cast<std::size_t>(port.value)];
    if (value.residence == Residence::input && value.name.starts_with(function.name + "/"))
      inputs.push_back(executor.view(port.value, 0));
  }
  return inputs;
}

std::size_t size_of(const std::vector<std::span<std::byte>>& inputs) {
  std::size_t bytes = 0;
  for (const std::span<std::byte> input : inputs) bytes += input.size();
  return bytes;
}

}  // namespace

LeadingSteps::LeadingSteps(Communicator& ranks, Seconds beat_every)
    : ranks_(ranks), beats_([this, beat_every] { beat(beat_every); }) {}

LeadingSteps::~LeadingSteps() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    if (!failure()) (void)send(kEnd, {});
  }
  ends_changed_.notify_all();
  beats_.join();
}

Status LeadingSteps::send(std::int32_t header, std::span<std::byte> inputs) {
  TRY(ranks_.broadcast(std::as_writable_bytes(std::span(&header, 1)), 0));
  return inputs.empty() ? Status() : ranks_.broadcast(inputs, 0);
}

// Keeps the first error, and has the others end with it.
Status LeadingSteps::keep(Status status) {
  if (status.ok()) return status;
  {
    const std::lock_guard lock(failure_mutex_);
    failure_ = status.error();
  }
  ranks_.abort(fmt::format("rank 0: {}", status.error().message));
  return status;
}

Status LeadingSteps::run(Executor& executor, const Schedule& schedule) {
  const std::lock_guard lock(mutex_);
  if (const std::optional<Error> before = failure()) return *before;
  stepped_ = true;
  const std::vector<std::span<std::byte>> inputs = inputs_of(executor, schedule);
  inputs_.resize(size_of(inputs));
  auto at = inputs_.begin();
  for (const std::span<std::byte> input : inputs) at = std::ranges::copy(input, at).out;
  const auto number = static_cast<std::int32_t>(&schedule - executor.program().schedules.data());
  TRY(keep(send(number, inputs_)));
  return keep(executor.run(schedule));
}

std::optional<Error> LeadingSteps::failure() const {
  const std::lock_guard lock(failure_mutex_);
  return failure_;
}

void LeadingSteps::beat(Seconds every) {
  std::unique_lock lock(mutex_);
  while (!ends_changed_.wait_for(lock, std::chrono::duration<double>(every.count()), [&] { return ends_; })) {
    if (failure()) return;
    if (std::exchange(stepped_, false)) continue;
    Status beaten = send(kBeat, {});
    if (beaten.ok()) beaten = ranks_.barrier();
    (void)keep(std::move(beaten));
  }
}

Status follow_steps(Executor& executor, Communicator& ranks, const std::function<bool()>& stays) {
  const auto step = [&](const Schedule& schedule) -> Status {
    const std::vector<std::span<std::byte>> inputs = inputs_of(executor, schedule);
    std::vector<std::byte> bytes(size_of(inputs));
    if (!bytes.empty()) TRY(ranks.broadcast(bytes, 0));
    auto at = bytes.begin();
    for (const std::span<std::byte> input : inputs) {
      std::copy_n(at, input.size(), input.begin());
      at += static_cast<std::ptrdiff_t>(input.size());
    }
    return executor.run(schedule);
  };
  const auto next = [&]() -> Result<bool> {
    std::int32_t header = kEnd;
    TRY(ranks.broadcast(std::as_writable_bytes(std::span(&header, 1)), 0));
    if (header == kEnd) return false;
    if (stays && !stays()) return error(ErrorKind::interrupted, "it was asked to stop");
    if (header == kBeat) {
      TRY(ranks.barrier());
      return true;
    }
    const std::vector<Schedule>& schedules = executor.program().schedules;
    if (header < 0 || header >= std::ssize(schedules))
      return error(ErrorKind::corrupt, "rank 0 sent step {} of {}", header, schedules.size());
    TRY(step(schedules[static_cast<std::size_t>(header)]));
    return true;
  };
  while (true) {
    const Result<bool> goes_on = next();
    if (!goes_on.ok()) {
      ranks.abort(fmt::format("rank {}: {}", ranks.rank(), goes_on.error().message));
      return goes_on.error();
    }
    if (!*goes_on) return {};
  }
}

}  // namespace systole
