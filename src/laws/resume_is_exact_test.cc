// resume-is-exact: a run that is killed three times at seeded moments ends with exactly the bits of an undisturbed one.
//
// SYSTOLE_TEST_LONG=1 hits every phase ten times; SYSTOLE_TEST_SEED=n sets the first seed.

#include <gtest/gtest.h>

#include <bit>
#include <chrono>
#include <csignal>
#include <map>
#include <random>

#include "laws/process_job.h"

namespace systole::laws {
namespace {

constexpr std::int64_t kSteps = 40;
constexpr const char* kPhases[] = {"read", "compute", "update", "snapshot", "write", "commit", "sweep"};

struct KilledRun {
  std::string state;
  std::vector<std::string> losses;  // a line per step, numbers as bits
};

KilledRun result_of(const Workshop& shop, const std::string& run) {
  KilledRun result;
  result.state = shop.state_hash(run, kSteps);
  for (const StepEnded& s : canonical_steps(shop.events(run))) {
    result.losses.push_back(fmt::format("step {} loss {:016x} norm {:016x} rate {:016x} labels {} tokens {} skipped {}",
                                        s.step, std::bit_cast<std::uint64_t>(s.loss),
                                        std::bit_cast<std::uint64_t>(s.gradient_norm),
                                        std::bit_cast<std::uint64_t>(s.rate), s.labels, s.tokens, s.skipped));
  }
  return result;
}

void expect_same(const KilledRun& killed, const KilledRun& whole) {
  EXPECT_EQ(killed.state, whole.state);
  EXPECT_EQ(killed.losses, whole.losses);
}

// If the run was killed before it had begun, it begins again.
std::vector<std::string> words_of(const Workshop& shop, const std::string& run, const std::string& inject) {
  std::vector<std::string> words = {"run", "job.yaml", "--folder", run};
  if (std::filesystem::exists(shop.path(run + "/plan.json")) &&
      std::filesystem::exists(shop.path(run + "/workload.yaml")))
    words = {"resume", run};
  if (!inject.empty()) words.insert(words.end(), {"--inject", inject});
  return words;
}

// Checks that it went on from the newest checkpoint, whose step is put into `saved`; 0: there was none.
void go_on_to_the_end(const Workshop& shop, const std::string& run, std::int64_t& saved) {
  saved = shop.newest_saved(run);
  const Captured done = shop.systole(words_of(shop, run, ""));
  ASSERT_EQ(done.exit.code, 0) << done.err;
  EXPECT_EQ(shop.not_resumed(run, saved), "");
}

KilledRun uninterrupted(const Workshop& shop) {
  std::int64_t saved = 0;
  go_on_to_the_end(shop, "whole", saved);
  KilledRun result = result_of(shop, "whole");
  EXPECT_EQ(result.losses.size(), static_cast<std::size_t>(kSteps));
  return result;
}

TEST(ResumeIsExact, the_same_run_twice) {
  const Workshop shop;
  const KilledRun whole = uninterrupted(shop);
  ASSERT_EQ(shop.systole({"run", "job.yaml", "--folder", "again"}).exit.code, 0);
  expect_same(result_of(shop, "again"), whole);
}

TEST(ResumeIsExact, killed_in_every_phase) {
  const int each = is_long() ? 10 : 1;
  const Workshop shop;
  const KilledRun whole = uninterrupted(shop);
  std::mt19937_64 random(test_seed());
  std::vector<std::string> plan;
  for (int i = 0; i < each; ++i) plan.insert(plan.end(), std::begin(kPhases), std::end(kPhases));
  std::shuffle(plan.begin(), plan.end(), random);
  std::map<std::string, int> hit;
  int run = 0, resumed = 0;
  while (!plan.empty()) {
    const std::string folder = fmt::format("killed-{}", ++run);
    std::string story;
    for (int kill = 0; kill < 3 && !plan.empty(); ++kill) {
      const std::string phase = plan.back();
      plan.pop_back();
      // At most four saves are requested, and sixteen steps, so three kills fit into a run.
      const bool of_saves = phase != "read" && phase != "compute" && phase != "update";
      const std::string at = fmt::format("kill={}@{}", phase, 1 + random() % (of_saves ? 3 : 12));
      story += at + " ";
      const Captured killed = shop.systole(words_of(shop, folder, at));
      ASSERT_EQ(killed.exit.signal, SIGKILL) << story << killed.out << killed.err;
      ++hit[phase];
    }
    SCOPED_TRACE(fmt::format("SYSTOLE_TEST_SEED={} {}", test_seed(), story));
    std::int64_t saved = 0;
    go_on_to_the_end(shop, folder, saved);
    resumed += saved > 0 ? 1 : 0;
    expect_same(result_of(shop, folder), whole);
    std::filesystem::remove_all(shop.path(folder));
  }
  EXPECT_GT(resumed, 0) << "a run that was killed in a sweep has a checkpoint";
  std::string histogram;
  for (const char* phase : kPhases) {
    EXPECT_GE(hit[phase], each) << phase;
    histogram += fmt::format(" {} {}", phase, hit[phase]);
  }
  note(fmt::format("seed {}: killed in{}; {} runs, {} from a checkpoint, {}", test_seed(), histogram, run, resumed,
                   HasFailure() ? "not the same" : "every bit the same"));
}

TEST(ResumeIsExact, killed_at_any_moment) {
  const int runs = is_long() ? 30 : 2;
  const Workshop shop;
  const KilledRun whole = uninterrupted(shop);
  // A whole run with slowed steps, so that most kills hit between the first and the last.
  const char* slowly = "compute=5ms";
  const auto began = std::chrono::steady_clock::now();
  ASSERT_EQ(shop.systole({"run", "job.yaml", "--folder", "slow", "--inject", slowly}).exit.code, 0);
  const Seconds length(std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
  std::mt19937_64 random(test_seed() + 1);
  int killed = 0, resumed = 0;
  for (int run = 1; run <= runs; ++run) {
    const std::string folder = fmt::format("killed-{}", run);
    std::string story;
    for (int kill = 0; kill < 3; ++kill) {
      const Seconds moment = length * (0.2 + 0.7 * static_cast<double>(random() % 1000) / 1000.0);
      story += to_string(moment) + " ";
      Command command = shop.command(words_of(shop, folder, slowly));
      command.out = command.err = ChildStream::null();
      Process process = Process::start(command).value();
      if (process.wait(moment)) continue;
      process.signal_group(SIGKILL).value();
      killed += process.wait().signal == SIGKILL ? 1 : 0;
    }
    SCOPED_TRACE(fmt::format("SYSTOLE_TEST_SEED={} killed after {}", test_seed(), story));
    std::int64_t saved = 0;
    go_on_to_the_end(shop, folder, saved);
    resumed += saved > 0 ? 1 : 0;
    expect_same(result_of(shop, folder), whole);
    std::filesystem::remove_all(shop.path(folder));
  }
  EXPECT_GE(killed, runs) << "too few kills came before the end";
  note(fmt::format("seed {}: {} kills at any moment in {} runs, {} from a checkpoint, {}", test_seed(), killed, runs,
                   resumed, HasFailure() ? "not the same" : "every bit the same"));
}

constexpr const char* kMixedJob = R"(systole: 1
name: tiny
model: { family: gpt, layers: 2, width: 32, heads: 2, context: 32, dropout: 0.1 }
data:
  mixture:
    sources: { words: { files: text.txt }, numbers: { files: numbers.txt, epochs: 1 } }
    schedule: [ { from: 0, words: 3, numbers: 1 }, { from: 50%, words: 1, numbers: 1 } ]
  tokenizer: { vocabulary: 300 }
  folder: data
train: { exact: true, batch: 6, microbatches: 2, steps: 40, optimizer: { rate: 3e-3 }, precision: bf16 }
checkpoint: { every: 4, keep: 2 }
resources: { threads: 2 }
)";

// Its rows are weighed anew at step 20, and the second source is exhausted on the way.
TEST(ResumeIsExact, a_mixture_killed_three_times_within_an_epoch) {
  const Workshop shop;
  std::string numbers;
  for (int i = 0; i < 150; ++i) numbers += fmt::format("{} and {} are {}.\n", i * 7919 % 1000, i, i * 7919 % 1000 + i);
  shop.write("numbers.txt", numbers);
  shop.write("job.yaml", kMixedJob);
  const KilledRun whole = uninterrupted(shop);
  for (const char* at : {"kill=compute@6", "kill=commit@2", "kill=update@9"}) {
    const Captured killed = shop.systole(words_of(shop, "killed", at));
    ASSERT_EQ(killed.exit.signal, SIGKILL) << at << killed.out << killed.err;
  }
  std::int64_t saved = 0;
  go_on_to_the_end(shop, "killed", saved);
  EXPECT_GT(saved, 0);
  expect_same(result_of(shop, "killed"), whole);
}

}  // namespace
}  // namespace systole::laws
