// every-second-named: category `other` is at most 2% of a run, an injected stall is found in its category, and all
// categories together are the time of the process as the test measures it.
//
// Each stall is 50 ms. The run with the stall is compared with the same run without. Loading data during a step's
// compute is not waiting, so the runs with slow data have steps of a millisecond.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "laws/process_job.h"

namespace systole::laws {
namespace {

constexpr int kSteps = 24;

std::vector<std::string> words_of(const std::string& run, int every) {
  std::vector<std::string> words = {"run",      "job.yaml",
                                    "--folder", run,
                                    "--set",    fmt::format("train.steps={}", kSteps),
                                    "--set",    fmt::format("checkpoint.every={}", every)};
  for (const char* small : {"model.layers=1", "train.batch=2", "train.microbatches=1", "train.logical_shards=1"})
    words.insert(words.end(), {"--set", small});
  return words;
}

Stopped stopped(const Workshop& shop, const std::string& run, const std::string& inject, int every) {
  std::vector<std::string> words = words_of(run, every);
  if (!inject.empty()) words.insert(words.end(), {"--inject", inject});
  const Captured done = shop.systole(words);
  CHECK(done.exit.code == 0, "{}", done.err);
  return last_of<Stopped>(shop.events(run));
}

class EverySecondNamed : public ::testing::Test {
 protected:
  void SetUp() override {
    if (is_sanitized()) GTEST_SKIP() << "measures time: runs in the release build";
  }
  const Workshop shop_;

  // Expects `stalls` of 50 ms, injected by `inject`, in `category` and nowhere else. `always`: injected into both runs.
  void expect_found(const std::string& inject, Category category, int stalls, int every,
                    const std::string& always = "") {
    const TimeByCategory without = stopped(shop_, "without", always, every).seconds;
    const TimeByCategory with = stopped(shop_, "with", inject + (always.empty() ? "" : "," + always), every).seconds;
    const double injected = 0.050 * stalls, found = (with[category] - without[category]).count();
    note(fmt::format("{}: {:.3f} s injected, {:.3f} s found in {}", inject, injected, found, name_of(category)));
    EXPECT_NEAR(found, injected, 0.1 * injected);
    for (int c = 0; c < kNumCategories; ++c) {
      const auto other = static_cast<Category>(c);
      if (other == category || other == Category::startup) continue;
      EXPECT_LT((with[other] - without[other]).count(), 0.1 * injected) << name_of(other);
    }
  }
};

TEST_F(EverySecondNamed, the_rest_is_at_most_two_percent) {
  const Captured done = shop_.systole(
      {"run", "job.yaml", "--folder", "long", "--set", "train.steps=400", "--set", "checkpoint.every=50"});
  ASSERT_EQ(done.exit.code, 0) << done.err;
  const TimeByCategory all = last_of<Stopped>(shop_.events("long")).seconds;
  const double rest = all[Category::other].count(), total = all.total().count();
  note(fmt::format("the rest is {:.2f}% of {:.2f} s", 100 * rest / total, total));
  EXPECT_LE(rest, 0.02 * total);
  EXPECT_GT(all[Category::compute].count(), 0.0);
  // Startup time must not hide unattributed time of the loop.
  TimeByCategory steps;
  for (const Event& event : shop_.events("long")) {
    if (const auto* step = std::get_if<StepEnded>(&event.body)) steps += step->seconds;
  }
  EXPECT_LE((steps[Category::startup] + steps[Category::other]).count(), 0.02 * steps.total().count());
  EXPECT_EQ(steps[Category::startup], Seconds());
}

// The time is measured from before the process is started until it has ended, so the categories cannot sum to more.
// What they leave out besides the rest of at most 2% is the program's load until its ledger opens, and its end after
// the last event. A process that plans the same and runs nothing takes longer than either. So twice its time is
// allowed, as measured here: on a busy machine both grow.
TEST_F(EverySecondNamed, all_of_them_are_the_time_of_the_process) {
  const auto seconds_of = [this](const std::vector<std::string>& words) {
    const auto began = std::chrono::steady_clock::now();
    const Captured done = shop_.systole(words);
    EXPECT_EQ(done.exit.code, 0) << done.err;
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  };
  std::vector<std::string> words = words_of("run", 2);
  words.insert(words.end(), {"--inject", "compute=100ms,logging=100ms,checkpoint=200ms"});  // 2.4 s in each
  const double process = seconds_of(words);
  ASSERT_FALSE(HasFailure());
  words = words_of("planned", 2);
  words.emplace_back("--dry-run");
  double planning = 0;
  for (int i = 0; i < 3; ++i) planning = std::max(planning, seconds_of(words));
  ASSERT_FALSE(std::filesystem::exists(shop_.path("planned")));
  const TimeByCategory all = last_of<Stopped>(shop_.events("run")).seconds;
  const double sum = all.total().count(), rest = all[Category::other].count();
  note(
      fmt::format("{:.3f} s of the {:.3f} s of a process are in categories, {:.3f} s of these in the rest; planning "
                  "takes {:.3f} s",
                  sum, process, rest, planning));
  EXPECT_LE(sum, process);
  EXPECT_GE(sum - rest, 0.98 * process - 2 * planning);
}

TEST_F(EverySecondNamed, a_stall_of_the_data) { expect_found("data=50ms", Category::data_wait, kSteps, 100); }
TEST_F(EverySecondNamed, a_stall_of_compute) { expect_found("compute=50ms", Category::compute, kSteps, 100); }
TEST_F(EverySecondNamed, a_stall_of_logging) { expect_found("logging=50ms", Category::logging, kSteps, 100); }
// Every second step: 12 saves, far enough apart for the disk, so no save waits for the previous one.
TEST_F(EverySecondNamed, a_stall_of_the_checkpoint) {
  expect_found("checkpoint=50ms", Category::checkpoint, kSteps / 2, 2, "compute=60ms");
}

}  // namespace
}  // namespace systole::laws
