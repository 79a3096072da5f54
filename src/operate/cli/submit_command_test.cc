// Failures of `systole submit`, with a Slurm made of files: what is left.
#include <gtest/gtest.h>

#include "operate/cli/testing/run_systole.h"

namespace systole::cli {
namespace {

namespace fs = std::filesystem;

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Fake Slurm programs, as shell code.
constexpr const char* kTested = "case \"$*\" in *--test-only*) exit 0 ;; esac\n";
constexpr const char* kAway = "echo 'error: Unable to contact slurm controller' >&2\nexit 1\n";

struct FailedSubmit : testing::Test {
  FailedSubmit() {
    systole_.write("job.yaml", kJob);
    program("squeue", "");
    program("sbatch", std::string(kTested) + "echo 17\n");
  }
  void program(const std::string& name, const std::string& text) const {
    systole_.write("bin/" + name, "#!/bin/sh\n" + text);
    fs::permissions(systole_.folder() / "bin" / name, fs::perms(0755));
  }
  Captured shell(const std::string& line) const { return systole_.shell("PATH=\"$PWD/bin:$PATH\"; " + line); }
  Captured submit(const std::string& before = "") const {
    return shell(before + "exec \"$SYSTOLE\" submit job.yaml --on slurm");
  }
  bool there(const std::string& path) const { return fs::exists(systole_.folder() / path); }
  void expect_nothing(const std::string& why) const {
    EXPECT_FALSE(there("runs")) << why << shell("find runs").out;
    EXPECT_FALSE(there("rendered")) << why;
    expect_no_run(why);
  }
  void expect_no_run(const std::string& why) const {
    const Captured stopped = shell("exec \"$SYSTOLE\" stop mine");
    EXPECT_EQ(stopped.exit.code, 2) << why;
    EXPECT_TRUE(says(stopped.err, "no run 'mine' was submitted from here")) << why << stopped.err;
    EXPECT_TRUE(says(stopped.err, "hint: systole submit WORKLOAD")) << why << stopped.err;
  }

  static constexpr const char* kJob = "systole: 1\nname: mine\ncommand: [/bin/true]\nresources: { longest: 1min }\n";
  SystoleRunner systole_;
};

TEST_F(FailedSubmit, that_cannot_be_rendered_leaves_nothing) {
  systole_.write("job.yaml", std::string(kJob) + "claims: { /data: corpus }\n");
  EXPECT_TRUE(says(submit().err, "claims: Slurm mounts no volumes"));
  expect_nothing("refused by the renderer");
  systole_.write("job.yaml", "systole: 1\nname: mine\n");
  EXPECT_EQ(submit().exit.code, 2);
  expect_nothing("no workload");
  fs::remove(systole_.folder() / "job.yaml");
  EXPECT_EQ(submit().exit.code, 2);
  expect_nothing("no file");
}

TEST_F(FailedSubmit, that_no_cluster_hears_leaves_nothing) {
  program("squeue", kAway);
  const Captured away = submit();
  EXPECT_EQ(away.exit.code, 1);
  EXPECT_TRUE(says(away.err, "squeue cannot ask Slurm's controller")) << away.err;
  expect_nothing("no controller");
}

// A file size limit acts like a full disk: the program is not left there in part.
TEST_F(FailedSubmit, that_finds_no_room_leaves_nothing) {
  const Captured full = submit("trap '' XFSZ; ulimit -f 100; ");
  EXPECT_EQ(full.exit.code, 1) << full.err;
  expect_nothing("no room");
}

TEST_F(FailedSubmit, that_is_refused_leaves_lines_of_the_audit_alone) {
  program("sbatch", "echo 'sbatch: error: Batch job submission failed: Invalid account' >&2\nexit 1\n");
  const Captured refused = submit();
  EXPECT_EQ(refused.exit.code, 2);
  EXPECT_TRUE(says(refused.err, "sbatch refuses: Batch job submission failed: Invalid account")) << refused.err;
  EXPECT_EQ(shell("cd runs/.submitted; find . -mindepth 1 | sort").out, "./audit.jsonl\n./lock\n");
  EXPECT_FALSE(there("rendered"));
  expect_no_run("refused");
  program("sbatch", std::string(kTested) + "echo 17\n");
  EXPECT_EQ(submit().exit.code, 0) << "the same line again";
}

TEST_F(FailedSubmit, that_the_cluster_may_have_taken_stays) {
  program("sbatch", std::string(kTested) + ": >\"$HOME/gone\"\n" + kAway);
  program("squeue", std::string("[ -e \"$HOME/gone\" ] || exit 0\n") + kAway);
  const Captured unknown = submit();
  EXPECT_EQ(unknown.exit.code, 1);
  EXPECT_TRUE(says(unknown.err, "whether slurm took 'mine' is not known")) << unknown.err;
  EXPECT_TRUE(there("runs/.submitted/mine/record.json"));
  EXPECT_FALSE(says(shell("exec \"$SYSTOLE\" stop mine").err, "no run 'mine'")) << "it may be there";
  program("squeue", "");
  program("sbatch", std::string(kTested) + "echo 17\n");
  EXPECT_TRUE(says(submit().out, "mine: submitted as slurm job 17")) << "the same line again sends it";
}

}  // namespace
}  // namespace systole::cli
