#pragma once
// Shared by the laws of runs through XLA: the tiny job on XLA's CPU plugin, and its losses.

#include <gtest/gtest.h>

#include <memory>

#include "ground/pjrt/places.h"
#include "laws/process_job.h"

namespace systole::laws {

inline std::vector<double> losses_of(const std::vector<Event>& events) {
  std::vector<double> losses;
  for (const Event& event : events) {
    if (const auto* step = std::get_if<StepEnded>(&event.body)) losses.push_back(step->loss);
  }
  return losses;
}

inline void expect_near(const std::vector<double>& found, const std::vector<double>& expected, std::size_t steps,
                        double apart) {
  ASSERT_EQ(found.size(), steps);
  ASSERT_EQ(expected.size(), steps);
  for (std::size_t i = 0; i < steps; ++i) EXPECT_NEAR(found[i], expected[i], apart) << "step " << i + 1;
}

class XlaRuns : public testing::Test {
 protected:
  void SetUp() override {
    if (!pjrt::find_plugin("cpu", pjrt::plugins_folder()).ok()) GTEST_SKIP() << "no plugin: tools/xla-plugins cpu";
  }

  // The tiny job, with whole batches unless `more` overrides. It uses this process's plugins; executables are cached
  // for the suite.
  Captured run(const std::string& device, const std::string& folder, const std::string& precision, int steps,
               std::vector<std::string> more = {}) {
    std::vector<std::string> words = {"run",      "job.yaml",
                                      "--device", device,
                                      "--set",    "train.exact=false",
                                      "--set",    "train.microbatches=1",
                                      "--set",    "train.optimizer.schedule=constant",
                                      "--set",    "train.optimizer.warmup=2",
                                      "--set",    "train.precision=" + precision,
                                      "--set",    fmt::format("train.steps={}", steps),
                                      "--folder", folder};
    words.insert(words.end(), more.begin(), more.end());
    return systole(std::move(words));
  }
  Captured systole(std::vector<std::string> words) {
    Command command = shop_.command(std::move(words));
    command.env.push_back({"XDG_CACHE_HOME", cache_->path("cache")});
    // Leaks of a vendor's library are ignored; LeakSanitizer is for ours.
    command.env.push_back({"ASAN_OPTIONS", "detect_leaks=0"});
    CaptureOptions options;
    options.timeout = Seconds(240.0);
    return run_captured(command, options).value();
  }

  // One test's executables are loaded by the next.
  static void SetUpTestSuite() { cache_ = std::make_unique<Workshop>(); }
  static void TearDownTestSuite() { cache_.reset(); }

  const Workshop shop_;
  static inline std::unique_ptr<Workshop> cache_;
};

}  // namespace systole::laws
