// every-second-named: the rest is at most 2% of a run, and a stall is found in the category that it was put into.
//
// Each stall is 50 ms. A run with the stall is held against the same run without; what data waits while a step computes
// is no wait, so the steps of the run with slow data are a millisecond long.

#include <gtest/gtest.h>

#include "laws/process_job.h"

namespace systole::laws {
namespace {

constexpr int kSteps = 24;

Stopped stopped(const Workshop& shop, const std::string& run, const std::string& inject, int every) {
  std::vector<std::string> words = {"run",      "job.yaml",
                                    "--folder", run,
                                    "--set",    fmt::format("train.steps={}", kSteps),
                                    "--set",    fmt::format("checkpoint.every={}", every)};
  for (const char* small : {"model.layers=1", "train.batch=2", "train.microbatches=1", "train.logical_shards=1"})
    words.insert(words.end(), {"--set", small});
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

  // `stalls` of 50 ms, injected by `inject`, are found in `category` and nowhere else. `always`: injected into both
  // runs.
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
  // What starting up took is not where the loop hides its rest.
  TimeByCategory steps;
  for (const Event& event : shop_.events("long")) {
    if (const auto* step = std::get_if<StepEnded>(&event.body)) steps += step->seconds;
  }
  EXPECT_LE((steps[Category::startup] + steps[Category::other]).count(), 0.02 * steps.total().count());
  EXPECT_EQ(steps[Category::startup], Seconds());
}

TEST_F(EverySecondNamed, a_stall_of_the_data) { expect_found("data=50ms", Category::data_wait, kSteps, 100); }
TEST_F(EverySecondNamed, a_stall_of_compute) { expect_found("compute=50ms", Category::compute, kSteps, 100); }
TEST_F(EverySecondNamed, a_stall_of_logging) { expect_found("logging=50ms", Category::logging, kSteps, 100); }
// Every second step: 12 saves, far enough apart for the disk, so that no save waits for the one before.
TEST_F(EverySecondNamed, a_stall_of_the_checkpoint) {
  expect_found("checkpoint=50ms", Category::checkpoint, kSteps / 2, 2, "compute=60ms");
}

}  // namespace
}  // namespace systole::laws
