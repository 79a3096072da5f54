// The overhead of observing a step: compares the same steps of the quickstart's model with all observers (counters and
// times of every kernel, the ledger of categories with its ring, the step's event) and with none, alternating. At most
// 1%.

#include <gtest/gtest.h>

#ifdef SYSTOLE_HAS_CPU
#include <algorithm>
#include <chrono>
#include <optional>

#include "execute/backends/cpu/cpu.h"
#include "execute/runtime/initialize.h"
#include "execute/train/stage_watch.h"
#include "execute/train/time_ledger.h"
#include "ground/base/testing/places.h"
#include "ground/process/core_wait.h"
#include "laws/process_job.h"
#include "operate/observe/event_file.h"
#include "operate/observe/rank_files.h"
#include "operate/run/plan_run.h"

namespace systole::laws {
namespace {

class Categories : public ActionObserver {
 public:
  explicit Categories(TimeLedger& ledger) : ledger_(ledger) {}
  void begin(const Action&, const Function& function) override {
    before_ = ledger_.enter(function.name == "update" ? Category::update : Category::compute);
  }
  void end(const Action&, const Function&) override { ledger_.enter(before_); }

 private:
  TimeLedger& ledger_;
  Category before_ = Category::other;
};

struct Trained {
  explicit Trained(bool count) {
    CpuOptions options;
    options.threads = 2;
    options.count = count;
    device = make_cpu_device(options).value();
    const Workload workload =
        load_workload(SYSTOLE_SOURCE_DIR "/examples/quickstart.yaml", {"", {"train.batch=4"}}).value();
    job = make_job(workload, *device).value();
    executor = Executor::create(*job.program, *device).value();
    initialize(*executor, 1).value();
    for (std::size_t v = 0; v < job.program->values.size(); ++v) {
      const ProgramValue& value = job.program->values[v];
      const std::vector<std::byte> zeros(static_cast<std::size_t>(value.type.bytes().count()));
      for (int slot = 0; slot < value.slots && value.residence == Residence::input; ++slot)
        executor->write(static_cast<int>(v), slot, zeros).value();
    }
  }
  void step(ActionObserver* observer) { executor->run(job.program->schedule_named("train"), observer).value(); }

  std::unique_ptr<Device> device;
  Job job;
  std::unique_ptr<Executor> executor;
};

double seconds_of(const std::function<void()>& body) {
  const auto began = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

// A busy machine makes single steps slow, never fast, so the lower quartile is the step's own time.
double lower_quarter(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 4];
}

// The overhead as a share of a step: 40 pairs of alternating steps; `watched_first` is the order within a pair.
double cost_of_watching(bool watched_first) {
  const Workshop shop;
  std::optional<Trained> first(watched_first), second(!watched_first);
  Trained& watched = watched_first ? *first : *second;
  Trained& alone = watched_first ? *second : *first;
  const std::unique_ptr<Clock> clock = real_clock();
  const std::unique_ptr<Store> store = open_posix_store(shop.path("")).value();
  const std::unique_ptr<Ring> ring = Ring::create(shop.path("spans"), 1024).value();
  const std::unique_ptr<EventFile> events = EventFile::open(*store, "events").value();
  TimeLedger ledger(*clock, Category::other);
  ledger.record_into(ring.get(), clock->now());
  Categories categories(ledger);
  std::int64_t step = 0;
  const auto watch = [&] {
    ledger.set_step(++step);
    watched.step(&categories);
    StepEnded ended;
    ended.step = step;
    ended.seconds = ledger.take_interval();
    events->add(Event{clock->now(), ended});
  };
  const auto run_alone = [&] { alone.step(nullptr); };
  for (int i = 0; i < 3; ++i) {
    watch();
    run_alone();
  }
  std::vector<double> with, without;
  for (int i = 0; i < 40; ++i) {
    if (i % 2 == 0) with.push_back(seconds_of(watch));
    without.push_back(seconds_of(run_alone));
    if (i % 2 == 1) with.push_back(seconds_of(watch));
  }
  EXPECT_GT(watched.executor->counters()[0].calls, 0);
  EXPECT_EQ(alone.executor->counters()[0].calls, 0);
  return lower_quarter(with) / lower_quarter(without) - 1;
}

Seconds middle(const Flight& flight) {
  std::vector<Seconds> times;
  for (const FlightStep& step : flight.recent) times.push_back(whole_time(step.seconds));
  std::sort(times.begin(), times.end());
  return times.at(times.size() / 2);
}

// The address of an arena makes one of two equal executors a percent faster. So each round has two new ones, created in
// alternating order, and the median round counts.
TEST(ObservingMeasured, costs_at_most_one_percent_of_a_step) {
  if (is_sanitized()) GTEST_SKIP() << "measures time: runs in the release build";
  std::vector<double> costs;
  for (int round = 0; round < 10; ++round) costs.push_back(cost_of_watching(round % 2 == 0));
  std::sort(costs.begin(), costs.end());
  const double cost = (costs[4] + costs[5]) / 2;
  note(fmt::format("watching a step costs {:+.2f}% (rounds from {:+.2f}% to {:+.2f}%)", 100 * cost, 100 * costs.front(),
                   100 * costs.back()));
  EXPECT_LE(cost, 0.01);
}

// For one of two ranks: the number of flight log entries times the cost of an entry, as a share of the step.
TEST(ObservingMeasured, a_ranks_flight_log_costs_at_most_one_percent_of_a_step) {
  if (is_sanitized()) GTEST_SKIP() << "measures time: runs in the release build";
  const Workshop shop;
  const Captured ran = shop.systole({"run", "job.yaml", "--folder", "two", "--ranks", "2", "--set", "train.exact=false",
                                     "--set", "train.batch=8", "--set", "model.width=128", "--set", "model.layers=3",
                                     "--set", "model.context=128", "--set", "train.steps=20"});
  ASSERT_EQ(ran.exit.code, 0) << ran.err;
  const std::unique_ptr<Store> store = open_posix_store(shop.path("two")).value();
  const Flight flight = read_flights(*store, "", 1).value().back();
  const Seconds step = middle(flight);
  const double changes = static_cast<double>(flight.now.changes) / static_cast<double>(flight.steps);

  const std::unique_ptr<Clock> clock = real_clock();
  const std::unique_ptr<FlightLog> log = FlightLog::create(shop.path("flight"), flight.identity).value();
  const CoreWait cores;
  StageWatch stages(*log, *clock, [&cores] { return cores.so_far(); });
  constexpr int kTellings = 20'000;
  const Seconds began = clock->now();
  for (int i = 0; i < kTellings; ++i) stages.enter(i % 2 == 0 ? Category::compute : Category::other, clock->now());
  const Seconds each = (clock->now() - began) * (1.0 / kTellings);
  const double cost = changes * (each / step);
  note(fmt::format("a rank's flight log: {:.0f} tellings a step of {} at {} each: {:.2f}%", changes, to_string(step),
                   to_string(each), 100 * cost));
  EXPECT_LE(cost, 0.01);
}

}  // namespace
}  // namespace systole::laws
#endif
