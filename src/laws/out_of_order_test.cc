// External events: a run is asked to stop, started twice, has a damaged newest checkpoint, or an unwritable folder.
// Nothing is lost, and each message says what to do.

#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <thread>

#include "laws/process_job.h"

namespace systole::laws {
namespace {

constexpr std::int64_t kSteps = 40;

// A run of two seconds or, with a longer `hold` of each of its 40 steps, more; waits for its step `step`.
Process started(const Workshop& shop, const std::string& run, std::int64_t step, const std::string& hold = "25ms") {
  Command command = shop.command({"run", "job.yaml", "--folder", run, "--inject", "compute=" + hold});
  command.out = command.err = ChildStream::null();
  Process process = Process::start(command).value();
  while (!process.has_ended()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (!std::filesystem::exists(shop.path(run + "/events/000.jsonl"))) continue;
    for (const Event& event : shop.events(run)) {
      const auto* ended = std::get_if<StepEnded>(&event.body);
      if (ended != nullptr && ended->step >= step) return process;
    }
  }
  ADD_FAILURE() << "it ended before it was disturbed";
  return process;
}

std::vector<StepEnded> without_times(std::vector<StepEnded> steps) {
  for (StepEnded& step : steps) step.seconds = {};
  return steps;
}

void expect_stopped_and_whole(int signal) {
  const Workshop shop;
  ASSERT_EQ(shop.systole({"run", "job.yaml", "--folder", "whole"}).exit.code, 0);
  Process process = started(shop, "asked", 6);
  process.signal(signal).value();
  const Exit exit = process.wait();
  EXPECT_EQ(exit.code, 75) << to_string(exit);
  const auto stopped = last_of<Stopped>(shop.events("asked"));
  EXPECT_EQ(stopped.reason, "signal");
  EXPECT_TRUE(stopped.saved);
  EXPECT_LT(stopped.step, kSteps);
  const Captured resumed = shop.systole({"resume", "asked"});
  ASSERT_EQ(resumed.exit.code, 0) << resumed.err;
  EXPECT_EQ(shop.state_hash("asked", kSteps), shop.state_hash("whole", kSteps));
  const auto steps = without_times(canonical_steps(shop.events("asked")));
  EXPECT_EQ(steps, without_times(canonical_steps(shop.events("whole"))));
  // Nothing was done twice: the second process began where the first stopped.
  EXPECT_EQ(shop.not_resumed("asked", stopped.step), "");
}

TEST(OutOfOrder, sigterm_saves_and_resume_goes_on) { expect_stopped_and_whole(SIGTERM); }
TEST(OutOfOrder, ctrl_c_saves_and_resume_goes_on) { expect_stopped_and_whole(SIGINT); }

TEST(OutOfOrder, a_second_process_on_the_same_run_is_refused) {
  const Workshop shop;
  Process first = started(shop, "run", 2, "500ms");  // longer than two others take to be refused
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"resume", "run"}, {"run", "job.yaml", "--folder", "run"}}) {
    const Captured second = shop.systole(words);
    EXPECT_EQ(second.exit.code, 1) << second.err;
    EXPECT_NE(second.err.find("hint:"), std::string::npos) << second.err;
    EXPECT_NE(second.err.find(std::to_string(first.pid())), std::string::npos) << second.err;
  }
  // The first run is unaffected: it stops when asked, and its state goes on to the end.
  first.signal(SIGTERM).value();
  EXPECT_EQ(first.wait().code, 75);
  const std::int64_t saved = shop.newest_saved("run");
  EXPECT_GE(saved, 2);
  EXPECT_EQ(shop.systole({"resume", "run"}).exit.code, 0);
  EXPECT_EQ(shop.not_resumed("run", saved), "");
  EXPECT_EQ(canonical_steps(shop.events("run")).size(), static_cast<std::size_t>(kSteps));
}

TEST(OutOfOrder, a_run_is_not_written_over) {
  const Workshop shop;
  ASSERT_EQ(shop.systole({"run", "job.yaml", "--folder", "run"}).exit.code, 0);
  const std::string before = shop.state_hash("run", kSteps);
  const Captured again = shop.systole({"run", "job.yaml", "--folder", "run"});
  EXPECT_EQ(again.exit.code, 1);
  EXPECT_NE(again.err.find("systole resume run"), std::string::npos) << again.err;
  EXPECT_EQ(shop.state_hash("run", kSteps), before);
}

// The newest manifest is truncated; the previous checkpoint is used, and the end is the same.
TEST(OutOfOrder, a_damaged_checkpoint_is_passed_over_and_said) {
  const Workshop shop;
  ASSERT_EQ(shop.systole({"run", "job.yaml", "--folder", "run"}).exit.code, 0);
  const std::string before = shop.state_hash("run", kSteps);
  std::vector<std::filesystem::path> manifests;
  for (const auto& entry : std::filesystem::directory_iterator(shop.path("run/checkpoints/manifests")))
    manifests.push_back(entry.path());
  std::sort(manifests.begin(), manifests.end());
  ASSERT_EQ(manifests.size(), 2u);
  std::filesystem::resize_file(manifests.back(), std::filesystem::file_size(manifests.back()) / 2);
  const Captured resumed = shop.systole({"resume", "run"});
  ASSERT_EQ(resumed.exit.code, 0) << resumed.err;
  EXPECT_NE(resumed.err.find("the checkpoint of step 40 was passed over"), std::string::npos) << resumed.err;
  EXPECT_EQ(shop.not_resumed("run", 36), "");
  EXPECT_EQ(shop.state_hash("run", kSteps), before);
}

TEST(OutOfOrder, other_numbers_do_not_go_on_from_a_checkpoint) {
  const Workshop shop;
  ASSERT_EQ(shop.systole({"run", "job.yaml", "--folder", "run"}).exit.code, 0);
  for (const char* other : {"model.width=64", "train.optimizer.rate=1e-3"}) {
    const Captured refused = shop.systole({"resume", "run", "--set", other});
    EXPECT_EQ(refused.exit.code, 2) << refused.err;
    EXPECT_NE(refused.err.find("hint:"), std::string::npos) << refused.err;
  }
}

// The bits of an exact run depend only on the machine's instructions: the run records them, and refuses to go on with
// others. The number of threads does not matter.
TEST(OutOfOrder, an_exact_run_does_not_go_on_with_other_numerics) {
#ifndef SYSTOLE_HAS_CPU
  GTEST_SKIP() << "the reference backend is the same everywhere";
#endif
  const Workshop shop;
  Command begin = shop.command({"run", "job.yaml", "--folder", "run", "--set", "train.steps=4"});
  begin.env.emplace_back("ONEDNN_MAX_CPU_ISA", "AVX2");
  const Captured began = run_captured(begin).value();
  ASSERT_EQ(began.exit.code, 0) << began.err;
  const std::string numerics = last_of<Opened>(shop.events("run")).numerics;
  EXPECT_TRUE(numerics.starts_with("this-machine(avx")) << numerics;
  EXPECT_NE(numerics.find(", oneDNN "), numerics.npos) << numerics;
  EXPECT_TRUE(numerics.ends_with(" avx2, bf16 in f32), exact over 8 logical shards")) << numerics;
  Command threads = shop.command({"resume", "run", "--set", "train.steps=6", "--set", "resources.threads=1"});
  threads.env = begin.env;
  const Captured the_same = run_captured(threads).value();
  EXPECT_EQ(the_same.exit.code, 0) << the_same.err;
  Command other = shop.command({"resume", "run", "--set", "train.steps=8", "--set", "train.logical_shards=4"});
  const Captured refused = run_captured(other).value();
  EXPECT_EQ(refused.exit.code, 2) << refused.err;
  EXPECT_NE(refused.err.find("error: exactness ends here: the run was computed by " + numerics + ", this is "),
            std::string::npos)
      << refused.err;
  EXPECT_NE(refused.err.find("hint: go on where it began"), std::string::npos) << refused.err;
  other = shop.command({"resume", "run", "--set", "train.steps=8", "--set", "train.exact=false"});
  const Captured went_on = run_captured(other).value();
  EXPECT_EQ(went_on.exit.code, 0) << went_on.err;
}

// A run from a machine with fewer instructions goes on here, also on ranks, to the same bits, if this machine is pinned
// to those instructions.
TEST(OutOfOrder, pinned_instructions_make_it_exact_again) {
#ifndef SYSTOLE_HAS_CPU
  GTEST_SKIP() << "the reference backend is the same everywhere";
#endif
  const Workshop shop;
  const auto began = [&](const std::string& run, std::vector<std::string> more) {
    std::vector<std::string> words{"run",   "job.yaml",       "--folder", run,
                                   "--set", "train.steps=12", "--set",    "train.batch=8"};
    words.insert(words.end(), more.begin(), more.end());
    return shop.systole(words);
  };
  ASSERT_EQ(began("whole", {"--pin-isa", "avx2"}).exit.code, 0);
  const std::string numerics = last_of<Opened>(shop.events("whole")).numerics;
  EXPECT_TRUE(numerics.starts_with("this-machine(avx2, oneDNN ")) << numerics;
  EXPECT_TRUE(numerics.ends_with(" avx2, bf16 in f32), exact over 8 logical shards")) << numerics;
  EXPECT_EQ(began("cut", {"--pin-isa", "avx2", "--inject", "compute=20ms,kill=update@7"}).exit.signal, SIGKILL);
  if (__builtin_cpu_supports("avx512f")) {
    const Captured refused = shop.systole({"resume", "cut"});
    EXPECT_EQ(refused.exit.code, 2) << refused.err;
    EXPECT_NE(refused.err.find("error: exactness ends here: the run was computed by " + numerics + ", this is "),
              std::string::npos)
        << refused.err;
    EXPECT_NE(refused.err.find("with --pin-isa, which computes by avx2/avx2 here too"), std::string::npos)
        << refused.err;
  }
  const Captured killed = shop.systole({"resume", "cut", "--pin-isa", "--inject", "compute=20ms,kill=update@3"});
  EXPECT_EQ(killed.exit.signal, SIGKILL) << killed.err;
  const Captured ended = shop.systole({"resume", "cut", "--pin-isa", "--set", "mesh={data: 2}"});
  ASSERT_EQ(ended.exit.code, 0) << ended.err;
  EXPECT_EQ(last_of<Opened>(shop.events("cut")).numerics, numerics);
  EXPECT_EQ(shop.state_hash("cut", 12), shop.state_hash("whole", 12));
}

TEST(OutOfOrder, instructions_that_are_not_there_are_refused) {
#ifndef SYSTOLE_HAS_CPU
  GTEST_SKIP() << "the reference backend is the same everywhere";
#endif
  const Workshop shop;
  const auto said = [&](std::vector<std::string> words, int code) {
    const Captured refused = shop.systole(std::move(words));
    EXPECT_EQ(refused.exit.code, code) << refused.err;
    EXPECT_NE(refused.err.find("hint:"), std::string::npos) << refused.err;
    return refused.err;
  };
  const std::string other = said({"plan", "job.yaml", "--pin-isa", "sse2"}, 2);
  EXPECT_NE(other.find("'sse2' is no instruction set of the cpu backend"), std::string::npos) << other;
  EXPECT_NE(other.find("avx512-bf16"), std::string::npos) << other;
  const std::string reference = said({"plan", "job.yaml", "--backend", "reference", "--pin-isa", "avx2"}, 2);
  EXPECT_NE(reference.find("the reference backend computes the same on every machine"), std::string::npos) << reference;
  for (const auto& [words, flag] : {std::pair("amx", "amx_tile"), std::pair("avx2-vnni", "avx_vnni")}) {
    std::ifstream file("/proc/cpuinfo");
    const std::string about(std::istreambuf_iterator<char>(file), {});
    if (about.find(flag) != about.npos) continue;
    const std::string lacking = said({"plan", "job.yaml", "--pin-isa", words}, 3);
    EXPECT_NE(lacking.find(std::string("--pin-isa: this machine lacks ")), std::string::npos) << lacking;
  }
  ASSERT_EQ(shop.systole({"run", "job.yaml", "--folder", "young", "--inject", "kill=update@1"}).exit.signal, SIGKILL);
  const std::string none = said({"resume", "young", "--pin-isa"}, 2);
  EXPECT_NE(none.find("has no checkpoint that says its instructions"), std::string::npos) << none;
}

// Nobody can create a folder in /proc, not even root.
TEST(OutOfOrder, a_folder_that_cannot_be_written) {
  const Workshop shop;
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"run", "job.yaml", "--folder", "/proc/systole"},
        {"run", "job.yaml", "--folder", "run", "--set", "data.folder=/proc/systole"}}) {
    const Captured refused = shop.systole(words);
    EXPECT_EQ(refused.exit.code, 1) << refused.err;
    EXPECT_NE(refused.err.find("/proc/systole"), std::string::npos) << refused.err;
    EXPECT_NE(refused.err.find("hint:"), std::string::npos) << refused.err;
  }
}

}  // namespace
}  // namespace systole::laws
