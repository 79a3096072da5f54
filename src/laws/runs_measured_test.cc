// `systole runs` takes at most 100 ms for 10,000 finished submitted runs and 10,000 runs of this machine, with a warm
// page cache and their index; as JSON twice that.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "ground/base/document.h"
#include "laws/process_job.h"
#include "operate/observe/testing/tiny_run.h"

namespace systole::laws {
namespace {

namespace fs = std::filesystem;

constexpr double kMost = 0.100;        // seconds
constexpr double kMostOfJson = 0.200;  // 4 MB of text, from a document of 180,000 values
constexpr int kRuns = 10'000;

class RunsMeasured : public ::testing::Test {
 protected:
  void SetUp() override {
    if (is_sanitized()) GTEST_SKIP() << "measures time: runs in the release build";
  }
  void write(const std::string& leaf, const std::string& text) const {
    fs::create_directories(fs::path(shop_.path(leaf)).parent_path());
    std::ofstream(shop_.path(leaf)) << text;
  }
  // A squeue that knows no job, and records its calls.
  void write_slurm() const {
    write("bin/squeue", "#!/bin/sh\n: >asked\n");
    fs::permissions(shop_.path("bin/squeue"), fs::perms(0755));
  }
  void write_submitted(int i) const {
    const std::string run = fmt::format("line-{}", i), place = "runs/.submitted/" + run;
    Node node = Node::map({{"run", run}, {"target", "slurm"}, {"submission", fmt::format("{:016x}", i)}});
    node.set("id", std::to_string(1000 + i)).set("from", shop_.path("")).set("place", shop_.path(place));
    node.set("folder", "runs/" + run).set("by", "somebody@login-1").set("usd_per_hour", 12.5).set("array", false);
    node.set("submitted_at", fmt::format("2026-11-24T{:02}:{:02}:{:02}.000Z", i / 3600, i / 60 % 60, i % 60));
    for (const char* digest : {"program", "workload_sha256", "plan_sha256", "program_sha256", "audit"})
      node.set(digest, std::string(64, 'a'));
    node.set("after", Node::sequence()).set("earlier", Node::sequence());
    write(place + "/record.json", to_json(node, 2));
    write(place + "/ledger", fmt::format("began {0} 0 1000 4\nended {0} 0 {1} {2}\n", 1000 + i, 4600 + i, i % 7));
  }
  void write_local(int i) const {
    Opened opened;
    opened.run = "here";
    opened.at = fmt::format("2026-11-24T{:02}:{:02}:{:02}.000Z", i / 3600, i / 60 % 60, i % 60);
    StepEnded step;
    step.step = step.tokens = 1000 + i;
    step.loss = 2.5;
    Stopped stopped;
    stopped.reason = "finished";
    std::string text;
    for (const Event& event : {Event{Seconds(0), opened}, Event{Seconds(1), step}, Event{Seconds(2), stopped}})
      text += to_json_line(event);
    write(fmt::format("runs/here-{}/events/000.jsonl", i), text);
    if (i % 10 == 0) write(fmt::format("runs/here-{}/plan.json", i), plan_);
  }
  std::string runs(const std::string& format) const {
    Command command = shop_.command({"runs", format});
    command.env.push_back({"PATH", shop_.path("bin") + ":" + std::getenv("PATH")});
    CaptureOptions options;
    options.limit = Bytes(std::int64_t{1} << 28);
    const Captured got = run_captured(command, options).value();
    EXPECT_EQ(got.exit.code, 0) << got.err;
    return got.out;
  }
  double seconds_of(const std::string& of, const std::string& format) {
    const std::string shown = runs(format);
    EXPECT_GT(std::ranges::count(shown, '\n'), kRuns);
    fs::remove(shop_.path("asked"));
    std::vector<double> seconds;
    for (int i = 0; i < 21; ++i) {
      const auto began = std::chrono::steady_clock::now();
      EXPECT_EQ(runs(format), shown);
      seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
    }
    EXPECT_FALSE(fs::exists(shop_.path("asked")));
    std::sort(seconds.begin(), seconds.end());
    // A busy machine makes single calls slow, never fast, so the lower quartile is the program's own time.
    const double lower = seconds[seconds.size() / 4];
    note(fmt::format("runs {} of {} {} runs: {:.1f} ms (fastest {:.1f}, median {:.1f}, slowest {:.1f} of {})", format,
                     kRuns, of, 1e3 * lower, 1e3 * seconds.front(), 1e3 * seconds[seconds.size() / 2],
                     1e3 * seconds.back(), seconds.size()));
    return lower;
  }
  const Workshop shop_;
  const std::string plan_ = to_json(tiny_plan("here"));
};

TEST_F(RunsMeasured, of_runs_that_were_submitted) {
  write_slurm();
  for (int i = 0; i < kRuns; ++i) write_submitted(i);
  for (int i = 0; i < 10; ++i) write_local(i);
  EXPECT_LE(seconds_of("submitted", "--quiet"), kMost);
  EXPECT_LE(seconds_of("submitted", "--json"), kMostOfJson);
}

TEST_F(RunsMeasured, of_runs_of_this_machine) {
  for (int i = 0; i < kRuns; ++i) write_local(i);
  EXPECT_LE(seconds_of("local", "--quiet"), kMost);
  EXPECT_LE(seconds_of("local", "--json"), kMostOfJson);
}

}  // namespace
}  // namespace systole::laws
