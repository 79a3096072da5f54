// submit, runs, logs, stop, resume, exec and results on a real Slurm.
#include <sys/mount.h>

#include <set>
#include <sstream>

#include "ground/base/document.h"
#include "ground/base/testing/places.h"
#include "laws/drawn_points.h"
#include "laws/slow_steps.h"
#include "laws/slurm_cluster.h"

namespace systole {
namespace {

class SlurmSubmit : public Slurm {
 protected:
  // Runs systole in this test's folder; expects exit code `code`.
  std::string systole(const std::string& words, int code = 0) const {
    const Captured ran = run("\"$SYSTOLE\" " + words);
    EXPECT_EQ(ran.exit.code, code) << words << "\n" << ran.out << ran.err;
    return ran.out + ran.err;
  }
  Node json(const std::string& words) const {
    const Captured ran = run("\"$SYSTOLE\" --json " + words);
    EXPECT_TRUE(ran.exit.ok()) << words << "\n" << ran.out << ran.err;
    return parse_json(ran.out, "stdout").value();
  }
  // A field of a submitted run in the output of `runs`.
  std::string told(const std::string& run_name, const char* what = "state") const {
    const Node document = json("runs");
    for (const Node& node : document.find("submitted")->items())
      if (node.find("run")->text() == run_name) return node.find(what)->text();
    return "none";
  }
  bool becomes(const std::string& run_name, const std::string& wanted, double seconds = 60) const {
    return waits([&] { return told(run_name) == wanted; }, seconds);
  }
  std::string output(const std::string& run_name) const { return run("\"$SYSTOLE\" logs " + run_name).out; }
  bool writes(const std::string& run_name, const std::string& part) const {
    return waits([&] { return has(output(run_name), part); });
  }
  // Slurm's jobs of this test's folder.
  std::string jobs() const { return run("squeue -h -t all -o '%j %T %Z' | sed -n \"s|^\\(.*\\) $PWD$|\\1|p\"").out; }
};

TEST_F(SlurmSubmit, is_followed_to_its_end_and_its_results_are_brought_home) {
  EXPECT_TRUE(has(systole("submit job.yaml --on slurm"), "line: submitted as slurm job "));
  const std::string followed = systole("logs -f line");
  EXPECT_TRUE(has(followed, "finished at step 1200")) << followed;
  EXPECT_TRUE(has(followed, "[finished as slurm job ")) << followed;
  EXPECT_EQ(told("line"), "finished");
  EXPECT_TRUE(has(systole("results line --out home"), "home: checkpoint of step 1200, verified"));
  expect_as_undisturbed("home");
  EXPECT_NE(told("line", "node_seconds"), "0");
  EXPECT_TRUE(has(systole("submit job.yaml --on slurm", 1), "the run 'line' has finished"));
  EXPECT_TRUE(has(systole("runs --verify-audit"), "each holds"));
}

TEST_F(SlurmSubmit, the_guides_commands_print_what_their_pages_have) {
  const Captured ran =
      run("env -u GTEST_OUTPUT python3 " SYSTOLE_SOURCE_DIR "/tests/guides/pages.py \"$SYSTOLE\" slurm");
  EXPECT_EQ(ran.exit.code, 0) << ran.out << ran.err;
}

TEST_F(SlurmSubmit, a_stopped_run_saves_and_resumes_to_the_same_bytes) {
  run(slow_steps(300));
  systole("submit job.yaml --on slurm");
  ASSERT_TRUE(writes("line", "step 50 ")) << output("line");
  EXPECT_TRUE(has(systole("stop line"), "stopped as slurm job")) << output("line");
  EXPECT_EQ(told("line", "reason"), "saved");
  EXPECT_TRUE(has(output("line"), "stopped with its state saved")) << output("line");
  EXPECT_TRUE(has(systole("submit job.yaml --on slurm", 1), "systole resume line"));
  EXPECT_TRUE(has(systole("resume line"), "submitted again as slurm job"));
  ASSERT_TRUE(becomes("line", "finished")) << output("line");
  EXPECT_TRUE(has(output("line"), "finished at step 300"));
  expect_as_undisturbed("runs/line");
}

// A dollar per second.
TEST_F(SlurmSubmit, at_its_budget_a_run_saves_and_stops_and_goes_on_with_more_to_the_same_bytes) {
  run(slow_steps(700));
  EXPECT_TRUE(has(systole("submit job.yaml --on slurm --set objective.budget=8", 2), "nobody knows what an hour of"));
  EXPECT_EQ(jobs(), "");
  systole("submit job.yaml --on slurm --set resources.price=900 --set objective.budget=8");
  ASSERT_TRUE(becomes("line", "budget_used")) << output("line");
  EXPECT_TRUE(has(output("line"), "its budget is used: stopped with its state saved")) << output("line");
  EXPECT_TRUE(has(told("line", "reason"), "its budget is used")) << told("line", "reason");
  const double cost = std::stod(told("line", "dollars"));
  EXPECT_EQ(cost, std::stod(told("line", "node_seconds")) / 4) << "to the cent: its price by its ledger";
  EXPECT_LE(cost, 9.0) << "over it by a second at most: Slurm's ends and the ledger's are whole seconds";
  EXPECT_GE(cost, 3.0);
  const Node document = json("runs");
  EXPECT_EQ(document.find("submitted")->items()[0].find("jobs")->items()[0].find("restarts")->text(), "0");
  EXPECT_EQ(jobs(), "line FAILED\n") << "and is not begun again";
  EXPECT_TRUE(has(systole("resume line", 2), "its budget is $8.00"));
  EXPECT_TRUE(has(systole("resume line --set train.steps=9000", 3), "objective.budget=DOLLARS"));
  EXPECT_TRUE(has(systole("resume line --set objective.budget=1000"), "submitted again as slurm job"));
  ASSERT_TRUE(becomes("line", "finished")) << output("line");
  EXPECT_GT(std::stod(told("line", "dollars")), cost) << "of all its jobs";
  expect_as_undisturbed("runs/line");
}

TEST_F(SlurmSubmit, a_preempted_run_says_so_and_goes_on) {
  run(slow_steps(300));
  systole("submit job.yaml --on slurm");
  ASSERT_TRUE(writes("line", "step 50 ")) << output("line");
  write("urgent.sh", "#!/bin/sh\nsleep 1\n");
  ASSERT_EQ(run("sbatch -p urgent -N4 --exclusive urgent.sh").exit.code, 0);
  EXPECT_TRUE(becomes("line", "preempted")) << told("line");
  ASSERT_TRUE(becomes("line", "finished")) << output("line");
  expect_as_undisturbed("runs/line");
}

TEST_F(SlurmSubmit, submitted_twice_at_once_it_is_one_job) {
  write_endless_job();
  run("for i in 1 2 3 4; do \"$SYSTOLE\" submit job.yaml --on slurm >out.$i 2>&1 & done; wait");
  EXPECT_TRUE(waits([&] { return jobs() == "line RUNNING\n"; })) << jobs() << run("cat out.*").out;
  systole("stop --now line");
}

// A stand-in for sbatch that calls the real one and then kills what `when` names.
TEST_F(SlurmSubmit, a_controller_that_dies_as_it_takes_a_run_is_not_given_it_again) {
  const std::string real = run("command -v sbatch").out;
  write("sbatch",
        "#!/bin/sh\n" + real.substr(0, real.size() - 1) +
            " \"$@\" >taken || exit 1\ncase \"$*\" in *--test-only*) exit 0 ;; esac\n" + std::string(kTool) +
            " controller " + (*cluster_ / "slurm").string() +
            " kill\necho 'sbatch: error: Unable to contact slurm controller (connect failure)' >&2\nexit 1\n");
  const Captured lost =
      run("chmod +x sbatch; PATH=$PWD:$PATH \"$SYSTOLE\" submit job.yaml --on slurm --run lost; code=$?; rm sbatch; "
          "exit $code");
  EXPECT_NE(lost.exit.code, 0);
  EXPECT_TRUE(has(lost.err, "whether slurm took 'lost' is not known")) << lost.err;
  EXPECT_TRUE(has(lost.err, "never twice")) << lost.err;
  const Captured away = run("\"$SYSTOLE\" runs");
  EXPECT_EQ(away.exit.code, 0) << "what is known here is told";
  EXPECT_TRUE(has(away.err, "cannot ask Slurm's controller")) << away.err;
  ASSERT_EQ(tool("controller", "start").exit.code, 0);
  // Found, or sent again: a killed controller may have lost it.
  systole("submit job.yaml --on slurm --run lost");
  ASSERT_TRUE(becomes("lost", "finished")) << output("lost");
  EXPECT_EQ(jobs(), "lost COMPLETED\n");
}

TEST_F(SlurmSubmit, killed_at_any_point_it_comes_to_one_job) {
  write("small.yaml", kSmall);
  const std::vector<int> points = drawn_points(12, 4);
  for (const int i : points) {
    const std::string name = fmt::format("small-{}", i);
    run(fmt::format("timeout -s KILL {} \"$SYSTOLE\" submit small.yaml --on slurm --run {} >/dev/null 2>&1",
                    0.02 + 0.03 * i, name));
    systole(fmt::format("submit small.yaml --on slurm --run {}", name), 0);
  }
  for (const int i : points)
    ASSERT_TRUE(becomes(fmt::format("small-{}", i), "finished")) << i << told(fmt::format("small-{}", i));
  std::istringstream all(jobs());
  std::multiset<std::string> names;
  for (std::string line; std::getline(all, line);)
    if (line.starts_with("small-")) names.insert(line);
  EXPECT_EQ(names.size(), points.size()) << jobs();
  EXPECT_TRUE(has(systole("runs --verify-audit"), "each holds"));
}

TEST_F(SlurmSubmit, tasks_of_an_array_are_followed_and_brought_home_each) {
  write("small.yaml", kSmall);
  systole("submit small.yaml --on slurm --set slurm.array=0:3");
  const std::string followed = systole("logs -f small");
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(has(followed, fmt::format("_{}: finished at step 20", i))) << followed;
  const std::string home = systole("results small --out home");
  for (int i = 0; i < 4; ++i)
    EXPECT_TRUE(has(home, fmt::format("home/small.{}: checkpoint of step 20, verified", i))) << home;
}

TEST_F(SlurmSubmit, a_failed_run_says_why) {
  write("bad.yaml",
        "systole: 1\nname: bad\ncommand: [sh, -c, echo the reason >&2; exit 7]\nresources: { longest: 1min }\n"
        "ranks: { retries: 0 }\n");
  systole("submit bad.yaml --on slurm");
  const std::string log = systole("logs -f bad", 1);
  EXPECT_TRUE(has(log, "the reason")) << log;
  EXPECT_EQ(told("bad"), "failed");
  EXPECT_TRUE(has(told("bad", "reason"), "exit code")) << told("bad", "reason");
  write("after.yaml", kSmall);
  systole("submit after.yaml --on slurm --after bad");
  EXPECT_TRUE(becomes("small", "stopped")) << told("small");
}

TEST_F(SlurmSubmit, what_slurm_refuses_is_said_in_its_words_and_leaves_nothing) {
  const std::string refused = systole("submit job.yaml --on slurm --set slurm.partition=nosuch", 2);
  EXPECT_TRUE(has(refused, "sbatch refuses: ")) << refused;
  EXPECT_TRUE(has(refused, "nvalid partition")) << refused;
  const std::string large = systole("submit job.yaml --on slurm --set resources.nodes=8 --set 'mesh={data: 8}'", 2);
  EXPECT_TRUE(has(large, "sbatch refuses: ")) << large;
  EXPECT_EQ(jobs(), "");
  EXPECT_EQ(told("line"), "none");
}

// A small file system under this test's folder, of the given size.
class SmallDisk {
 public:
  SmallDisk(std::filesystem::path place, const std::string& size) : place_(std::move(place)) {
    std::filesystem::create_directory(place_);
    mounted_ = ::mount("small", place_.c_str(), "tmpfs", 0, ("size=" + size).c_str()) == 0;
  }
  ~SmallDisk() {
    if (mounted_) ::umount2(place_.c_str(), MNT_DETACH);
  }
  bool mounted() const { return mounted_; }

 private:
  std::filesystem::path place_;
  bool mounted_ = false;
};

TEST_F(SlurmSubmit, a_full_disk_of_its_nodes_is_said) {
  const SmallDisk disk(folder_ / "small", "160k");
  ASSERT_TRUE(disk.mounted());
  systole("submit job.yaml --on slurm --set folder=small/runs");
  EXPECT_TRUE(has(systole("logs -f line", 1), "checkpoints do not fit"));
  EXPECT_EQ(told("line"), "failed");
  EXPECT_EQ(told("line", "reason"), "exit code 1") << "of the node that said so, not of those that Slurm ended for it";
}

TEST_F(SlurmSubmit, a_full_disk_where_it_is_submitted_leaves_nothing) {
  const SmallDisk disk(folder_ / "small", "1m");
  ASSERT_TRUE(disk.mounted());
  const Captured full = run("cd small && \"$SYSTOLE\" submit ../job.yaml --on slurm");
  EXPECT_NE(full.exit.code, 0);
  EXPECT_TRUE(has(full.err, "No space left on device")) << full.err;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "small/runs"));
  EXPECT_EQ(run("squeue -h -n line -t pending,running").out, "");
}

TEST_F(SlurmSubmit, a_command_runs_beside_the_ranks_and_no_run_is_left_behind) {
  write_endless_job();
  systole("submit job.yaml --on slurm");
  ASSERT_TRUE(writes("line", "step 100 ")) << output("line");
  EXPECT_EQ(run("\"$SYSTOLE\" exec line --node n2 -- sh -c 'echo $SLURMD_NODENAME; exit 5'").out, "n2\n");
  EXPECT_EQ(run("\"$SYSTOLE\" exec line -- sh -c 'exit 5'").exit.code, 5);
  systole("stop --now --purge line");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "runs/.submitted/line"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "runs/.submitted/.programs"));
  EXPECT_TRUE(has(systole("exec line -- true", 2), "no run 'line' was submitted from here"));
}

TEST_F(SlurmSubmit, another_machine_that_sees_the_folder_goes_on_with_it) {
  write_endless_job();
  systole("submit job.yaml --on slurm");
  ASSERT_TRUE(writes("line", "step 100 ")) << output("line");
  // The submitter leaves only the folder.
  EXPECT_TRUE(has(
      run("cd / && cd " + folder_.string() + " && env -i PATH=$PATH SLURM_CONF=$SLURM_CONF \"$SYSTOLE\" stop line").out,
      "stopped"));
  EXPECT_EQ(told("line"), "stopped");
}

}  // namespace
}  // namespace systole
