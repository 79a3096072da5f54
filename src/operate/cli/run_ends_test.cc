// How a run ends on request, and what is known of it afterwards.
#include <gtest/gtest.h>

#include "operate/cli/testing/run_systole.h"
#include "operate/cli/testing/small_workload.h"

namespace systole::cli {
namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Sends `signal` to a run of an hour once it has reported a step; prints "code N".
std::string stopped_by(const SystoleRunner& systole, const std::string& signal, const std::string& more = "") {
  systole.write("job.yaml", replaced(replaced(kWorkload, "steps: 4", "steps: 100000"), "name: small",
                                     "name: small\nobserve: { every: 1 }"));
  return systole
      .shell(more +
             "\"$SYSTOLE\" run job.yaml --backend reference --folder r --inject forward=30ms 2>err >out & pid=$!; "
             "n=0; while [ $n -lt 600 ] && ! grep -q 'step 2 ' err; do n=$((n+1)); sleep 0.05; done; " +
             signal + "; wait $pid; echo code $?")
      .out;
}

TEST(RunEnds, by_a_hangup_or_usr1_as_by_term_saved) {
  for (const char* signal : {"TERM", "HUP", "USR1"}) {
    const SystoleRunner systole;
    const std::string code = stopped_by(systole, fmt::format("kill -{} $pid", signal));
    EXPECT_TRUE(has(code, "code 75\n")) << signal << code << systole.shell("cat err").out;
    EXPECT_TRUE(has(systole.shell("cat err").out, "\nstopping: saving step ")) << systole.shell("cat err").out;
    EXPECT_EQ(systole.run({"ckpt", "list", "r"}).exit.code, 0) << signal;
    const Captured resumed = systole.run({"resume", "r", "--backend", "reference", "--set", "train.steps=60"});
    EXPECT_EQ(resumed.exit.code, 0) << resumed.err;
    EXPECT_TRUE(has(resumed.err, "it goes on from the checkpoint of step ")) << resumed.err;
  }
}

TEST(RunEnds, systole_stop_ends_a_run_of_this_machine_saved) {
  for (const auto& [words, ranks] : {std::pair("stop r", ""), {"stop small-1", " --ranks 2"}, {"stop --now r", ""}}) {
    const SystoleRunner systole;
    const bool saves = std::string(words) != "stop --now r";
    systole.write("job.yaml", replaced(replaced(kWorkload, "steps: 4", "steps: 100000"), "name: small",
                                       "name: small\nobserve: { every: 1 }"));
    const std::string folder = std::string(ranks).empty() ? "r" : "runs/small-1";
    const Captured told = systole.shell(fmt::format(
        "\"$SYSTOLE\" run job.yaml --backend reference --folder {0}{1} --inject forward=30ms >all 2>&1 & pid=$!; "
        "n=0; while [ $n -lt 1200 ] && ! grep -q 'step 2 ' all; do n=$((n+1)); sleep 0.05; done; "
        "\"$SYSTOLE\" {2}; echo stop $?; kill -0 $pid 2>/dev/null && echo runs; wait $pid; echo code $?",
        folder, ranks, words));
    EXPECT_TRUE(has(told.out, "stop 0\ncode ")) << words << told.out << told.err << systole.shell("cat all").out;
    if (saves) {
      EXPECT_TRUE(has(told.out, "code 75\n")) << told.out;
      EXPECT_TRUE(has(told.err, "asked process ") && has(told.err, " to save and end; waiting for it\n")) << told.err;
      EXPECT_TRUE(has(told.out, folder + ": stopped, at step ")) << told.out;
      EXPECT_TRUE(has(told.err, "next: systole resume " + folder)) << told.err;
      EXPECT_EQ(systole.run({"ckpt", "list", folder}).exit.code, 0);
    }
    const Captured again = systole.run({"stop", folder});
    EXPECT_EQ(again.exit.code, 0) << again.err;
    EXPECT_TRUE(has(again.out, "; no process runs it\n")) << again.out;
    EXPECT_EQ(systole.run({"stop", folder, "--purge"}).exit.code, 2);
  }
}

// The number in the lock is another process's now: it stays, and the run is not said to be stopped.
TEST(RunEnds, systole_stop_ends_no_process_that_does_not_hold_the_lock) {
  const SystoleRunner systole;
  systole.write("job.yaml", kWorkload);
  ASSERT_EQ(systole.run({"run", "job.yaml", "--backend", "reference"}).exit.code, 0);
  const Captured over = systole.shell(
      "sleep 60 & pid=$!; echo $pid >runs/small-1/lock; \"$SYSTOLE\" stop small-1; echo code $?; kill $pid && echo "
      "lives");
  EXPECT_TRUE(has(over.out, "runs/small-1: finished, at step 4; no process runs it\ncode 0\nlives\n")) << over.out;
  const Captured held = systole.shell(
      "sleep 60 & pid=$!; flock runs/small-1/lock sleep 60 & n=0; "
      "while [ $n -lt 200 ] && flock -n runs/small-1/lock true; do n=$((n+1)); sleep 0.02; done; "
      "echo $pid >runs/small-1/lock; \"$SYSTOLE\" stop small-1; echo code $?; kill $pid && echo lives; kill $!");
  EXPECT_FALSE(has(held.out, "code 0")) << held.out;
  EXPECT_TRUE(has(held.out, "lives\n")) << held.out;
  EXPECT_TRUE(has(held.err, "is in use by a process ") && has(held.err, " that cannot be seen from here\n  hint: "))
      << held.err;
}

TEST(RunEnds, nohup_ignores_the_hangup_and_hears_the_rest) {
  const SystoleRunner systole;
  const std::string code =
      stopped_by(systole, "kill -HUP $pid; sleep 0.3; kill -0 $pid && kill -TERM $pid", "trap '' HUP; ");
  EXPECT_TRUE(has(code, "code 75\n")) << code;
}

TEST(RunEnds, a_hangup_comes_to_ranks_and_to_programs_as_their_term) {
  const SystoleRunner systole;
  systole.write("ranks.yaml", replaced(replaced(kWorkload, "steps: 4", "steps: 100000"), "name: small",
                                       "name: small\nobserve: { every: 1 }"));
  const Captured ranks = systole.shell(
      "\"$SYSTOLE\" run ranks.yaml --backend reference --ranks 2 --folder r --inject forward=30ms >out 2>err & pid=$!; "
      "n=0; while [ $n -lt 1200 ] && ! grep -q 'step 2 ' out; do n=$((n+1)); sleep 0.05; done; "
      "kill -HUP $pid; wait $pid; echo code $?");
  EXPECT_TRUE(has(ranks.out, "code 75\n")) << ranks.out << systole.shell("cat out err").out;
  EXPECT_EQ(systole.shell("cat out err | grep -c '^stopping: saving step '").out, "1\n") << "rank 0 says so";
  systole.write(
      "program.yaml",
      "systole: 1\nname: mine\ncommand: [sh, -c, \"trap 'exit 0' TERM; echo up; while :; do sleep 0.05; done\"]\n");
  const Captured program = systole.shell(
      "\"$SYSTOLE\" run program.yaml --ranks 2 --folder p >out 2>err & pid=$!; n=0; "
      "while [ $n -lt 600 ] && [ \"$(cat p/logs/* 2>/dev/null | grep -c up)\" != 2 ]; do n=$((n+1)); sleep 0.05; done; "
      "kill -USR1 $pid; wait $pid; echo code $?");
  EXPECT_TRUE(has(program.out, "code 75\n")) << program.out << systole.shell("cat err").out;
}

// Slurm signals the other nodes of a step once the first has ended; they may be ending too.
TEST(RunEnds, a_signal_in_its_last_moments_changes_nothing) {
  for (const auto& [ranks, told] : {std::pair("1", "stopped at step "), {"2", "stopped with its state saved"}}) {
    const SystoleRunner systole;
    systole.write("job.yaml", replaced(replaced(kWorkload, "steps: 4", "steps: 100000"), "name: small",
                                       "name: small\nobserve: { every: 1 }"));
    const Captured ended = systole.shell(
        fmt::format("\"$SYSTOLE\" run job.yaml --backend reference --ranks {} --folder r --inject forward=30ms >all "
                    "2>&1 & pid=$!; n=0; while [ $n -lt 1200 ] && ! grep -q 'step 2 ' all; do n=$((n+1)); sleep 0.05; "
                    "done; kill -TERM $pid; n=0; while [ $n -lt 12000 ] && ! grep -q '^{}' all; do n=$((n+1)); "
                    "sleep 0.005; done; n=0; while [ $n -lt 50000 ]; do n=$((n+1)); kill -TERM $pid 2>/dev/null; done; "
                    "wait $pid; echo code $?",
                    ranks, told));
    EXPECT_TRUE(has(ended.out, "code 75\n")) << ranks << ended.out << systole.shell("cat all").out;
  }
}

TEST(RunEnds, a_refused_resume_changes_nothing_of_the_run) {
  for (const char* ranks : {"1", "2"}) {
    const SystoleRunner systole;
    systole.write("job.yaml", kWorkload);
    ASSERT_EQ(systole.run({"run", "job.yaml", "--backend", "reference", "--ranks", ranks}).exit.code, 0);
    const Captured before = systole.run({"runs"});
    EXPECT_TRUE(has(before.out, "small-1  finished")) << before.out;
    const Captured refused =
        systole.run({"resume", "small-1", "--backend", "reference", "--ranks", ranks, "--set", "train.batch=16"});
    EXPECT_EQ(refused.exit.code, 2) << refused.err;
    EXPECT_TRUE(has(refused.err, "other numbers")) << refused.err;
    EXPECT_EQ(systole.run({"runs"}).out, before.out);
    EXPECT_TRUE(has(systole.run({"why", "small-1"}).out, "finished"));
    const Captured again =
        systole.run({"resume", "small-1", "--backend", "reference", "--ranks", ranks, "--set", "train.steps=8"});
    EXPECT_EQ(again.exit.code, 0) << again.err;
  }
}

TEST(RunEnds, a_program_of_ones_own_is_among_the_runs) {
  const SystoleRunner systole;
  systole.write("job.yaml", kWorkload);
  systole.write("well.yaml", "systole: 1\nname: hello\ncommand: [sh, -c, exit 0]\n");
  systole.write("bad.yaml", "systole: 1\nname: bad\ncommand: [sh, -c, exit 9]\n");
  ASSERT_EQ(systole.run({"run", "job.yaml", "--backend", "reference"}).exit.code, 0);
  ASSERT_EQ(systole.run({"run", "well.yaml"}).exit.code, 0);
  EXPECT_EQ(systole.run({"run", "bad.yaml", "--max-restarts", "0"}).exit.code, 1);
  const std::string runs = systole.run({"runs"}).out;
  EXPECT_TRUE(has(runs, "hello-1  finished")) << runs;
  EXPECT_TRUE(has(runs, "bad-1    failed")) << runs;
  const Captured why = systole.run({"why"});  // the newest run
  EXPECT_EQ(why.exit.code, 3) << why.out;
  EXPECT_TRUE(has(why.err, "bad-1' is of a program of your own")) << why.err;
  EXPECT_TRUE(has(systole.run({"resume", "hello-1"}).err, "goes on from what it saved itself"));
}

TEST(RunEnds, a_dry_run_of_one_that_goes_on_predicts_what_is_left) {
  const SystoleRunner systole;
  systole.write("job.yaml", kWorkload);
  ASSERT_EQ(systole.run({"run", "job.yaml", "--backend", "reference"}).exit.code, 0);
  const Captured dry =
      systole.run({"resume", "small-1", "--backend", "reference", "--set", "train.steps=5", "--dry-run"});
  EXPECT_EQ(dry.exit.code, 0) << dry.err;
  EXPECT_TRUE(has(dry.out, "5 steps, 4 of them done; 1 left, ")) << dry.out;
}

TEST(RunEnds, eager_by_the_environment_is_eager_by_the_option) {
  const SystoleRunner systole;
  systole.write("job.yaml", kWorkload);
  const auto ops_of = [](const Captured& done) { return done.out.substr(0, done.out.find("finished")); };
  const Captured option = systole.run({"run", "job.yaml", "--backend", "reference", "--eager"});
  const Captured variable = systole.shell("SYSTOLE_EAGER=1 \"$SYSTOLE\" run job.yaml --backend reference");
  EXPECT_GT(ops_of(option).size(), 10u);
  EXPECT_EQ(ops_of(variable), ops_of(option));
  const Captured off = systole.shell("SYSTOLE_EAGER=0 \"$SYSTOLE\" run job.yaml --backend reference");
  EXPECT_EQ(ops_of(off), "") << off.out;
}

TEST(Inject, what_can_never_act_is_refused) {
  const SystoleRunner systole;
  systole.write("job.yaml", kWorkload);
  const auto said = [&](const std::string& inject, std::vector<std::string> more = {}) {
    std::vector<std::string> words = {"run", "job.yaml", "--backend", "reference", "--inject", inject};
    words.insert(words.end(), more.begin(), more.end());
    const Captured done = systole.run(words);
    EXPECT_EQ(done.exit.code, 2) << inject << done.err;
    return done.err;
  };
  EXPECT_TRUE(has(said("data=50ms@2"), "has no reader to hold up"));
  EXPECT_TRUE(has(said("stuck=data@2"), "has no reader to hold up"));
  EXPECT_TRUE(has(said("rank1.forward=50ms"), "there is no rank 1"));
  EXPECT_TRUE(has(said("rank7.nan=2", {"--ranks", "2"}), "there is no rank 7"));
  EXPECT_TRUE(has(said("link=5ms"), "there is one rank"));
  EXPECT_TRUE(has(said("kill=gather@1"), "no all_gather is run"));
  EXPECT_TRUE(has(said("kill=reduce@1"), "has no phase reduce"));
  EXPECT_TRUE(has(said("nan=5"), "step 5 is behind the last"));
  EXPECT_TRUE(has(said("forward=5ms@9"), "step 9 is behind the last"));
  EXPECT_TRUE(has(said("rank1.forward=5ms", {"--ranks", "2", "--in-process"}), "rank 0 alone"));
  EXPECT_FALSE(std::filesystem::exists(systole.folder() / "runs")) << "nothing was begun";
  systole.write("program.yaml", "systole: 1\nname: p\ncommand: [sh, -c, exit 0]\n");
  EXPECT_EQ(systole.run({"run", "program.yaml", "--chaos", "h.yaml"}).exit.code, 2);
}

}  // namespace
}  // namespace systole::cli
