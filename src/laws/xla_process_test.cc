// `run --device xla-cpu` beside the cpu backend: the same job, its steps lowered to StableHLO and run by XLA on this
// machine's cores.

#include <gtest/gtest.h>

#include <cmath>

#include "ground/pjrt/places.h"
#include "laws/process_job.h"

namespace systole::laws {
namespace {

std::vector<double> losses_of(const std::vector<Event>& events) {
  std::vector<double> losses;
  for (const Event& event : events) {
    if (const auto* step = std::get_if<StepEnded>(&event.body)) losses.push_back(step->loss);
  }
  return losses;
}

class XlaRuns : public testing::Test {
 protected:
  void SetUp() override {
    if (!pjrt::find_plugin("cpu", pjrt::plugins_folder()).ok()) GTEST_SKIP() << "no plugin: tools/xla-plugins cpu";
  }

  // The tiny job, whole batches unless `more` says otherwise. The plugins are where this process sees them; what is
  // compiled stays in the workshop.
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
    command.env.push_back({"XDG_CACHE_HOME", shop_.path("cache")});
    // A vendor's library leaves what it leaves; LeakSanitizer is for ours.
    command.env.push_back({"ASAN_OPTIONS", "detect_leaks=0"});
    CaptureOptions options;
    options.timeout = Seconds(240.0);
    return run_captured(command, options).value();
  }

  const Workshop shop_;
};

TEST_F(XlaRuns, ten_steps_follow_the_cpu) {
  struct Tried {
    const char *precision, *microbatches;
    double apart;
  };
  for (const auto& [precision, microbatches, apart] : {Tried{"f32", "2", 1e-5}, Tried{"bf16", "1", 2e-2}}) {
    const std::string cpu = fmt::format("cpu-{}", precision), xla = fmt::format("xla-{}", precision);
    const std::vector<std::string> cut{"--set", fmt::format("train.microbatches={}", microbatches)};
    const Captured first = run("cpu", cpu, precision, 10, cut), second = run("xla-cpu", xla, precision, 10, cut);
    ASSERT_EQ(first.exit.code, 0) << first.err;
    ASSERT_EQ(second.exit.code, 0) << second.err;
    const std::vector<double> expected = losses_of(shop_.events(cpu)), found = losses_of(shop_.events(xla));
    ASSERT_EQ(expected.size(), 10u);
    ASSERT_EQ(found.size(), 10u);
    double most = 0;
    for (std::size_t i = 0; i < 10; ++i) most = std::max(most, std::abs(found[i] - expected[i]));
    note(fmt::format("{}: losses at most {:.2e} apart", precision, most));
    EXPECT_LE(most, apart) << precision;
    EXPECT_LT(found.back(), found.front());
    EXPECT_NE(second.err.find("step: "), std::string::npos) << second.err;  // what was compiled, and how
    EXPECT_EQ(second.err.find("forward: "), std::string::npos) << second.err;
  }
}

// Its checkpoints are anybody's: what one device saved the other goes on from, and ends where it would have.
TEST_F(XlaRuns, go_on_from_each_others_checkpoints) {
  ASSERT_EQ(run("xla-cpu", "whole", "f32", 8).exit.code, 0);
  const Captured half = run("xla-cpu", "half", "f32", 4);
  ASSERT_EQ(half.exit.code, 0) << half.err;
  const Captured rest = systole({"resume", "half", "--backend", "xla-cpu", "--set", "train.steps=8"});
  ASSERT_EQ(rest.exit.code, 0) << rest.err;
  EXPECT_NE(rest.err.find("loaded in"), std::string::npos) << rest.err;  // kept from the run before
  const std::vector<double> whole = losses_of(shop_.events("whole")), halves = losses_of(shop_.events("half"));
  ASSERT_EQ(whole.size(), 8u);
  ASSERT_EQ(halves.size(), 8u);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(halves[i], whole[i]) << i;
  const Captured on_cpu = systole({"resume", "half", "--backend", "cpu", "--set", "train.steps=10"});
  ASSERT_EQ(on_cpu.exit.code, 0) << on_cpu.err;
  EXPECT_EQ(losses_of(shop_.events("half")).size(), 10u);
}

TEST_F(XlaRuns, a_plugin_that_is_not_there_is_one_sentence_with_its_command) {
  Command command = shop_.command({"run", "job.yaml", "--device", "gpu", "--set", "train.exact=false"});
  command.env.push_back({"SYSTOLE_XLA_PLUGINS", shop_.path("nowhere")});
  const Captured refused = run_captured(command).value();
  EXPECT_EQ(refused.exit.code, 3) << refused.err;
  EXPECT_NE(refused.err.find("tools/xla-plugins gpu"), std::string::npos) << refused.err;
}

}  // namespace
}  // namespace systole::laws
