#pragma once
// A real Slurm on loopback for a test suite, and helpers to use it (tools/slurm).

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>

#include "ground/base/testing/files.h"
#include "ground/base/testing/places.h"
#include "ground/base/testing/waits.h"
#include "ground/process/capture.h"

namespace systole {

inline constexpr const char* kSystole = SYSTOLE_BINARY_DIR "/src/operate/cli/systole";
inline constexpr const char* kTool = SYSTOLE_SOURCE_DIR "/tools/slurm";
// On four nodes of one rank each; exact, to compare interrupted with undisturbed runs.
inline constexpr const char* kJob =
    "systole: 1\nname: line\nmodel: { family: mlp, inputs: 64, hidden: [], outputs: 10, loss: squared_error }\n"
    "data: { kind: linear, rows: 60000, held_out_rows: 100, noise: 0.1 }\n"
    "train: { batch: 32, steps: 1200, exact: true, optimizer: { kind: sgd, rate: 0.01 } }\n"
    "checkpoint: { every: 100 }\nmesh: { data: 4 }\n"
    "resources: { nodes: 4, threads: 1, longest: 10min }\nranks: { notice: 8s }\n";
// The same on one node.
inline constexpr const char* kSmall =
    "systole: 1\nname: small\nmodel: { family: mlp, inputs: 8, hidden: [], outputs: 2, loss: squared_error }\n"
    "data: { kind: linear, rows: 64, held_out_rows: 0, noise: 0.1 }\n"
    "train: { batch: 8, steps: 20, optimizer: { kind: sgd, rate: 0.01 } }\n"
    "resources: { threads: 1, longest: 5min }\n";

inline bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class Slurm : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    std::string name = (std::filesystem::temp_directory_path() / "systole-slurm-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    cluster_ = new std::filesystem::path(name);
    if (::geteuid() != 0) return;
    std::filesystem::permissions(name, std::filesystem::perms(0755));
    const Captured up = words({kTool, "up", (*cluster_ / "slurm").string(), "4"}, *cluster_);
    ASSERT_EQ(up.exit.code, 0) << up.out << up.err;
  }
  static void TearDownTestSuite() {
    if (::geteuid() == 0) words({kTool, "down", (*cluster_ / "slurm").string()}, *cluster_);
    std::filesystem::remove_all(*cluster_);
    delete cluster_;
  }
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "slurmd needs root";
    folder_ = *cluster_ / testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directory(folder_);
    write("job.yaml", kJob);
  }
  void TearDown() override {
    if (HasFailure())
      std::cerr
          << run("squeue -a; tail -n 30 slurm-*.log; tail -n 40 " + (*cluster_ / "slurm/slurmctld.log").string()).out;
    if (::geteuid() == 0) run("scancel --me; while [ -n \"$(squeue -h)\" ]; do sleep 0.1; done");
  }

  void write(const std::string& name, const std::string& text) const { std::ofstream(folder_ / name) << text; }
  // A job that runs until it is stopped.
  void write_endless_job() const {
    const std::string job = kJob;
    write("job.yaml", std::string(job).replace(job.find("steps: 1200"), 11, "steps: 1000000"));
  }
  // A line of shell that uses this cluster's Slurm.
  Captured run(const std::string& line) const {
    return words({"/bin/bash", "-c", ". " + (*cluster_ / "slurm/env").string() + "; " + line}, folder_);
  }
  Captured tool(const std::string& what, const std::string& node) const {
    return words({kTool, what, (*cluster_ / "slurm").string(), node}, folder_);
  }
  void render(const std::string& job, const std::string& more = "") const {
    const Captured made = run(fmt::format("\"$SYSTOLE\" render {} --on slurm {}", job, more));
    ASSERT_EQ(made.exit.code, 0) << made.err;
  }
  std::string submit(const std::string& options = "", const std::string& place = "rendered/slurm") const {
    const Captured sent = run(fmt::format("sbatch --parsable {} {}/job.sbatch", options, place));
    EXPECT_EQ(sent.exit.code, 0) << sent.err;
    return sent.out.substr(0, sent.out.find('\n'));
  }
  std::string state(const std::string& job) const {
    const std::string shown = run("scontrol -o show job " + job).out;
    const std::size_t at = shown.find("JobState=");
    return at == shown.npos ? "" : shown.substr(at + 9, shown.find(' ', at) - at - 9);
  }
  bool reaches(const std::string& job, const std::string& wanted, double seconds = 60) const {
    return waits([&] { return state(job) == wanted; }, seconds);
  }
  std::string log(const std::string& job) const { return text_of(folder_ / fmt::format("slurm-{}.log", job)); }
  bool logs(const std::string& job, const std::string& part) const {
    return waits([&] { return has(log(job), part); });
  }
  // The expected result: the same run on this machine, without Slurm or interruptions. In one process, since exact
  // training does not depend on their number.
  void expect_as_undisturbed(const std::string& run_folder) const {
    const Captured here = run(
        "\"$SYSTOLE\" run job.yaml --set 'mesh={data: 1}' --set resources.nodes=1 --folder undisturbed >here.log 2>&1");
    ASSERT_EQ(here.exit.code, 0) << text_of(folder_ / "here.log");
    const Captured same = run("\"$SYSTOLE\" ckpt diff undisturbed " + run_folder);
    EXPECT_EQ(same.exit.code, 0) << same.out << same.err;
  }

  static Captured words(std::vector<std::string> argv, const std::filesystem::path& folder) {
    Command command;
    command.argv = std::move(argv);
    command.cwd = folder.string();
    command.env = {{"SYSTOLE", kSystole},
                   {"HOME", cluster_->string()},
                   {"NO_COLOR", "1"},
                   {"PORT", std::to_string(17001 + ::getpid() % 200 * 6)}};
    CaptureOptions options;
    options.timeout = Seconds(180.0);
    return run_captured(command, options).value();
  }

  inline static std::filesystem::path* cluster_ = nullptr;
  std::filesystem::path folder_;
};

}  // namespace systole
