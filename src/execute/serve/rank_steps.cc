#include "execute/serve/rank_steps.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <future>

namespace systole {
namespace {

constexpr std::int32_t kBeat = -1, kEnd = -2, kLoad = -3;
constexpr std::chrono::milliseconds kRound(250);  // of a load under way, in which a rank says so

// How a rank's load goes.
struct LoadReport {
  enum : std::int32_t { under_way, done, failed } state = under_way;
  std::array<char, 508> why{};  // ends with a 0

  static LoadReport of(const Status& loaded) {
    LoadReport report;
    report.state = loaded.ok() ? done : failed;
    if (!loaded.ok()) loaded.error().message.copy(report.why.data(), report.why.size() - 1);
    return report;
  }
};

template <typename T>
std::span<std::byte> bytes_of(T& value) {
  return std::as_writable_bytes(std::span(&value, 1));
}

Status without_throwing(const std::function<Status()>& load) {
  try {
    return load();
  } catch (const Failure& failure) { return failure.error(); } catch (const std::exception& thrown) {
    return error(ErrorKind::internal, "{}", thrown.what());
  }
}

// Loads on a thread of its own, while the ranks tell each other that they are there: one may read for longer than the
// transport waits. Nothing: all have loaded. Else why one has not; the first. Errors: of the communicator.
Result<std::optional<Error>> load_together(Communicator& ranks, const std::function<Status()>& own) {
  std::future<Status> loading = std::async(std::launch::async, [&own] { return without_throwing(own); });
  std::optional<Status> loaded;
  while (true) {
    if (!loaded && loading.wait_for(kRound) == std::future_status::ready) loaded = loading.get();
    bool ends = true;
    std::optional<Error> failed;
    for (std::int32_t rank = 0; rank < ranks.num_ranks(); ++rank) {
      LoadReport report;
      if (rank == ranks.rank() && loaded) report = LoadReport::of(*loaded);
      TRY(ranks.broadcast(bytes_of(report), rank));
      ends = ends && report.state != LoadReport::under_way;
      if (report.state == LoadReport::failed && !failed)
        failed = error(ErrorKind::io, "rank {}: {}", rank, report.why.data());
    }
    if (ends) return failed;
  }
}

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

Status LeadingSteps::load(const RankedWeights& weights, const std::function<Status()>& own) {
  const std::lock_guard lock(mutex_);
  if (const std::optional<Error> before = failure()) return *before;
  stepped_ = true;
  RankedWeights sent = weights;
  TRY(keep(send(kLoad, bytes_of(sent))));
  const Result<std::optional<Error>> loaded = load_together(ranks_, own);
  if (!loaded.ok()) return keep(loaded.error());
  return *loaded ? Status(**loaded) : Status();
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

Status follow_steps(Executor& executor, Communicator& ranks, const std::function<bool()>& stays,
                    const LoadRankedWeights& load) {
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
    if (header == kLoad) {
      RankedWeights weights;
      TRY(ranks.broadcast(bytes_of(weights), 0));
      const auto own = [&] {
        return load ? load(weights) : error(ErrorKind::unsupported, "it loads no other weights");
      };
      TRY(load_together(ranks, own));  // if one has failed, rank 0 says what is loaded instead
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
