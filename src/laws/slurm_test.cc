// What is rendered for Slurm, on a real one: tools/slurm brings a controller and four nodes up on loopback.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "ground/process/capture.h"

namespace systole {
namespace {

constexpr const char* kSystole = SYSTOLE_BINARY_DIR "/src/operate/cli/systole";
constexpr const char* kTool = SYSTOLE_SOURCE_DIR "/tools/slurm";
// On four nodes of one rank each; exact, so that what was interrupted can be held to what was not.
constexpr const char* kJob =
    "systole: 1\nname: line\nmodel: { family: mlp, inputs: 64, hidden: [], outputs: 10, loss: squared_error }\n"
    "data: { kind: linear, rows: 60000, held_out_rows: 100, noise: 0.1 }\n"
    "train: { batch: 32, steps: 3000, exact: true, optimizer: { kind: sgd, rate: 0.01 } }\n"
    "checkpoint: { every: 100 }\nmesh: { data: 4 }\n"
    "resources: { nodes: 4, threads: 1, longest: 10min }\nranks: { notice: 8s }\n";
// The same on one.
constexpr const char* kSmall =
    "systole: 1\nname: small\nmodel: { family: mlp, inputs: 8, hidden: [], outputs: 2, loss: squared_error }\n"
    "data: { kind: linear, rows: 64, held_out_rows: 0, noise: 0.1 }\n"
    "train: { batch: 8, steps: 20, optimizer: { kind: sgd, rate: 0.01 } }\n"
    "resources: { threads: 1, longest: 5min }\n";

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

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
  // A line of shell, to which this cluster's Slurm answers.
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
  bool waits(const std::function<bool()>& until, double seconds = 60) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    while (!until()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return true;
  }
  bool reaches(const std::string& job, const std::string& wanted, double seconds = 60) const {
    return waits([&] { return state(job) == wanted; }, seconds);
  }
  std::string log(const std::string& job) const { return text_of(folder_ / fmt::format("slurm-{}.log", job)); }
  bool logs(const std::string& job, const std::string& part) const {
    return waits([&] { return has(log(job), part); });
  }
  // The same run on this machine, without Slurm: what it must come to.
  void expect_as_undisturbed(const std::string& run_folder) const {
    const Captured here = run("\"$SYSTOLE\" run job.yaml --folder undisturbed >here.log 2>&1");
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

  static std::filesystem::path* cluster_;
  std::filesystem::path folder_;
};
std::filesystem::path* Slurm::cluster_ = nullptr;

TEST_F(Slurm, has_four_nodes) {
  const Captured names = run("srun -N4 --ntasks-per-node=1 sh -c 'echo $SLURMD_NODENAME' | sort");
  EXPECT_EQ(names.out, "n0\nn1\nn2\nn3\n") << names.err;
}

TEST_F(Slurm, four_nodes_train_what_one_machine_does) {
  render("job.yaml");
  const std::string job = submit();
  ASSERT_TRUE(reaches(job, "COMPLETED")) << log(job);
  EXPECT_TRUE(has(log(job), "finished at step 3000")) << log(job);
  const std::string said = log(job);
  int joined = 0;  // beside the one that leads
  for (std::size_t at = said.find(" joined with room"); at != said.npos; at = said.find(" joined with room", at + 1))
    ++joined;
  EXPECT_EQ(joined, 3) << said;
  expect_as_undisturbed("runs/line");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "runs/line/token")) << "what the nodes share is no longer there";
}

TEST_F(Slurm, a_preempted_run_saves_is_begun_again_and_comes_to_the_same_bytes) {
  render("job.yaml");
  const std::string job = submit();
  ASSERT_TRUE(logs(job, "step 300 ")) << log(job);
  write("urgent.sh", "#!/bin/sh\nsleep 1\n");
  ASSERT_EQ(run("sbatch -p urgent -N4 --exclusive urgent.sh").exit.code, 0);
  ASSERT_TRUE(logs(job, "stopped with its state saved")) << log(job);
  ASSERT_TRUE(reaches(job, "COMPLETED")) << log(job);
  EXPECT_TRUE(has(log(job), "finished at step 3000"));
  EXPECT_TRUE(has(run("scontrol -o show job " + job).out, "Restarts=1 "));
  expect_as_undisturbed("runs/line");
}

TEST_F(Slurm, a_node_that_dies_costs_what_came_after_the_last_checkpoint) {
  render("job.yaml");
  const std::string job = submit();
  ASSERT_TRUE(logs(job, "step 300 ")) << log(job);
  ASSERT_EQ(tool("kill", "n2").exit.code, 0);
  ASSERT_TRUE(waits([&] { return state(job) == "PENDING"; })) << log(job);
  ASSERT_EQ(tool("start", "n2").exit.code, 0);
  ASSERT_TRUE(reaches(job, "COMPLETED", 120)) << log(job);
  EXPECT_TRUE(has(log(job), "finished at step 3000"));
  expect_as_undisturbed("runs/line");
}

TEST_F(Slurm, a_cancelled_run_saves_and_is_not_begun_again) {
  render("job.yaml");
  const std::string job = submit();
  ASSERT_TRUE(logs(job, "step 300 ")) << log(job);
  ASSERT_EQ(run("scancel --name=line").exit.code, 0);
  ASSERT_TRUE(reaches(job, "CANCELLED")) << log(job);
  ASSERT_TRUE(logs(job, "stopped with its state saved")) << log(job);
  std::this_thread::sleep_for(std::chrono::seconds(1));
  EXPECT_EQ(state(job), "CANCELLED");
  const std::string again = submit();  // the same files
  ASSERT_TRUE(reaches(again, "COMPLETED")) << log(again);
  expect_as_undisturbed("runs/line");
}

TEST_F(Slurm, an_array_is_one_run_a_seed) {
  write("small.yaml", kSmall);
  render("small.yaml", "--set slurm.array=0:3 --set train.seed=10");
  const std::string job = submit();
  ASSERT_TRUE(waits([&] { return run("squeue -h").out.empty(); }));
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(has(text_of(folder_ / fmt::format("slurm-{}_{}.log", job, i)), "finished at step 20")) << i;
    ASSERT_EQ(run(fmt::format("\"$SYSTOLE\" run small.yaml --set train.seed={} --folder seed-{}", 10 + i, i)).exit.code,
              0);
    EXPECT_EQ(run(fmt::format("\"$SYSTOLE\" ckpt diff seed-{0} runs/small.{0}", i)).exit.code, 0) << i;
  }
  EXPECT_EQ(run("\"$SYSTOLE\" ckpt diff seed-0 seed-1").exit.code, 1);
}

TEST_F(Slurm, a_chain_goes_on_only_after_what_went_well) {
  write("good.yaml",
        "systole: 1\nname: good\ncommand: [sh, -c, date +%s.%N >$SYSTOLE_RUN/at]\nresources: { longest: 1min }\n");
  write("bad.yaml", "systole: 1\nname: bad\ncommand: [sh, -c, exit 1]\nresources: { longest: 1min }\n");
  for (const char* name : {"good", "bad"}) render(fmt::format("{}.yaml", name), fmt::format("--out {}", name));
  const std::string first = submit("", "good");
  const std::string second = submit("--dependency=afterok:" + first + " --export=ALL,SYSTOLE_AFTER=1", "good");
  const std::string failed = submit("--dependency=afterok:" + second, "bad");
  const std::string never = submit("--dependency=afterok:" + failed + " --kill-on-invalid-dep=yes", "good");
  ASSERT_TRUE(reaches(failed, "FAILED")) << log(failed);
  EXPECT_EQ(state(first), "COMPLETED");
  EXPECT_EQ(state(second), "COMPLETED");
  EXPECT_TRUE(reaches(never, "CANCELLED")) << state(never);
}

TEST_F(Slurm, what_was_changed_on_the_way_is_not_started) {
  write("small.yaml", kSmall);
  render("small.yaml");
  ASSERT_EQ(run("echo '# one more line' >>rendered/slurm/workload.yaml").exit.code, 0);
  const std::string job = submit();
  ASSERT_TRUE(reaches(job, "FAILED"));
  EXPECT_TRUE(has(log(job), "workload.yaml on ")) << log(job);
  EXPECT_TRUE(has(log(job), "is not the file that was rendered")) << log(job);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "runs/small/plan.json"));
}

TEST_F(Slurm, takes_what_is_rendered_as_its_own) {
  for (const char* more : {"", "--set resources.nodes=2:4", "--set slurm.array=0:9 --set slurm.at_once=2"}) {
    write("own.yaml", "systole: 1\nname: own\ncommand: [hostname]\nresources: { longest: 1min }\n");
    render("own.yaml", more);
    const Captured taken = run("sbatch --test-only rendered/slurm/job.sbatch");
    EXPECT_EQ(taken.exit.code, 0) << more << taken.err;
  }
}

}  // namespace
}  // namespace systole
