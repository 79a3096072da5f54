#pragma once
// For tests: a training loop on a small linear regression, with the reference device, an in-memory disk that can fail,
// and a fake clock.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <utility>

#include "execute/backends/reference/reference.h"
#include "execute/checkpoint/restore.h"
#include "execute/runtime/initialize.h"
#include "execute/train/state.h"
#include "execute/train/trainer.h"
#include "ground/store/testing/faulty.h"

namespace systole {

inline constexpr const char* kJob = R"(systole: 1
name: line
model: { family: mlp, inputs: 3, outputs: 2 }
data: { kind: linear, rows: 64, held_out_rows: 12, noise: 0.1 }
train: { batch: 4, optimizer: { kind: sgd, rate: 0.05 } }
checkpoint: { every: 4, keep: 100 }
)";

struct Killed : std::exception {};

// Calls that were started and not yet waited for, by function: now, and the maximum.
struct InFlight {
  std::map<std::string, int> now, most;
};

// The reference device as one that runs ahead: it finishes each call at once, but the caller cannot know before it
// waits.
class Ahead : public Device {
 public:
  explicit Ahead(InFlight& calls) : calls_(calls) {}
  bool runs_ahead() const override { return true; }
  const Target& target() const override { return reference_->target(); }
  Bytes workspace(const Graph& graph, const GraphNode& node) const override {
    return reference_->workspace(graph, node);
  }
  Result<std::unique_ptr<Memory>> allocate(Bytes bytes) override { return reference_->allocate(bytes); }
  DeviceEvent copy_in(Memory& memory, const SlotAddress& to, std::span<const std::byte> from) override {
    return reference_->copy_in(memory, to, from);
  }
  DeviceEvent copy_out(Memory& memory, const SlotAddress& from, std::span<std::byte> into) override {
    return reference_->copy_out(memory, from, into);
  }
  Result<std::unique_ptr<Executable>> compile(const Function& function) override {
    Result<std::unique_ptr<Executable>> made = reference_->compile(function);
    if (made.ok()) functions_[made->get()] = function.name;
    return made;
  }
  Result<std::unique_ptr<Call>> bind(const Executable& executable, Memory& memory,
                                     const Addresses& addresses) override {
    Result<std::unique_ptr<Call>> bound = reference_->bind(executable, memory, addresses);
    if (bound.ok()) called_[bound->get()] = functions_.at(&executable);
    return bound;
  }
  DeviceEvent run(Call& call, WorkCounters& counters) override {
    const std::string& function = called_.at(&call);
    const int now = ++calls_.now[function];
    calls_.most[function] = std::max(calls_.most[function], now);
    return DeviceEvent(std::make_shared<Begun>(reference_->run(call, counters), calls_.now[function]));
  }

 private:
  class Begun : public DeviceEvent::Pending {
   public:
    Begun(DeviceEvent event, int& now) : event_(std::move(event)), now_(now) {}
    Status wait() override {
      now_ -= std::exchange(waited_, true) ? 0 : 1;
      return event_.wait();
    }

   private:
    DeviceEvent event_;
    int& now_;
    bool waited_ = false;
  };

  InFlight& calls_;
  std::map<const Executable*, std::string> functions_;
  std::map<const Call*, std::string> called_;
  std::unique_ptr<Device> reference_ = make_reference_device();
};

// A run's folder and all that its processes left.
class Trained : public testing::Test {
 protected:
  // Runs a process from the newest checkpoint, if there is one, to its end.
  Result<TrainOutcome> process(std::vector<std::string> sets, TrainHooks hooks = {}) {
    WorkloadOptions options;
    options.sets = std::move(sets);
    const Workload workload = read_workload(kJob, "job.yaml", options).value();
    const std::unique_ptr<Device> device =
        ahead_ ? std::unique_ptr<Device>(std::make_unique<Ahead>(in_flight_)) : make_reference_device();
    const Job job = make_job(workload, *device).value();
    const std::unique_ptr<Executor> executor = Executor::create(*job.program, *device).value();
    TrainerParts parts;
    parts.clock = &clock_;
    parts.events = &events_;
    parts.checkpoints = folder_;
    TrainState state;
    checkpoint::prepare(folder_).value();
    if (checkpoint::list_steps(folder_)->empty()) {
      initialize(*executor, 1).value();
    } else {
      const checkpoint::Restored newest = checkpoint::open_newest(folder_).value();
      load_state(*executor, newest.checkpoint).value();
      state = state_from(newest.checkpoint.manifest().extra).value();
    }
    parts.source = open_linear_source(workload, workload.train.batch, false, true, state.cursor).value();
    parts.held_out = [&] { return open_linear_source(workload, job.evaluation_rows, true, false, Node()); };
    parts.hooks = std::move(hooks);
    parts.budget = budget_;
    TimeLedger ledger(clock_, Category::startup);
    return Trainer(job, *executor, std::move(parts), ledger, std::move(state)).run();
  }

  // Runs a process that dies while it computes this step.
  void killed_at(std::int64_t step, std::vector<std::string> sets, TrainHooks hooks = {}) {
    const auto before = hooks.in_compute;
    hooks.in_compute = [step, before](std::int64_t now) {
      if (before) before(now);
      if (now == step) throw Killed();
    };
    EXPECT_THROW(static_cast<void>(process(std::move(sets), std::move(hooks))), Killed);
  }

  std::map<std::int64_t, std::optional<double>> metrics() {
    std::map<std::int64_t, std::optional<double>> found;
    const std::vector<std::int64_t> steps = checkpoint::list_steps(folder_).value();
    for (const std::int64_t step : steps) found[step] = checkpoint::load_manifest(folder_, step)->metric;
    return found;
  }

  template <typename Body>
  std::vector<Body> all() const {
    std::vector<Body> found;
    for (const Event& event : events_.events) {
      if (const auto* body = std::get_if<Body>(&event.body)) found.push_back(*body);
    }
    return found;
  }

  // On the fake clock, steps take 1 s, evaluation batches 10 s, and saving nothing.
  TrainHooks slow() {
    TrainHooks hooks;
    hooks.in_compute = [this](std::int64_t) { clock_.advance(Seconds(1.0)); };
    hooks.on_phase = [this](const char* phase) {
      if (std::string_view(phase) == "evaluation") clock_.advance(Seconds(10.0));
    };
    return hooks;
  }

  std::optional<TimeBudget> budget_;
  bool ahead_ = false;  // on a device that runs ahead
  InFlight in_flight_;  // on that device
  FaultyStore disk_;
  checkpoint::Folder folder_{objects_in(disk_), "checkpoints"};
  FakeClock clock_;
  EventList events_;
};

}  // namespace systole
