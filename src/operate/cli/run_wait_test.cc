// `--wait`: one process works on a run, and another one waits for it.
#include <gtest/gtest.h>

#include "operate/cli/testing/run_systole.h"
#include "operate/cli/testing/small_workload.h"

namespace systole::cli {
namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class RunWait : public testing::Test {
 protected:
  // A run of an hour in folder r, process $first; `then` runs after its first reported step.
  std::string beside_a_run(const std::string& then, const std::string& more = "") {
    systole_.write("job.yaml", replaced(replaced(kWorkload, "steps: 4", "steps: 100000"), "name: small",
                                        "name: small\nobserve: { every: 1 }"));
    return systole_
        .shell(
            "rm -rf r all second; until_said() { n=0; while [ $n -lt 1200 ] && ! grep -q \"$1\" \"$2\"; do n=$((n+1)); "
            "sleep 0.05; done; }; "
            "\"$SYSTOLE\" run job.yaml --backend reference --folder r --inject forward=30ms " +
            more + " >all 2>&1 & first=$!; until_said 'step 2 ' all; " + then +
            "; kill -TERM $first 2>/dev/null; wait $first; echo first $?")
        .out;
  }
  std::string said(const std::string& file) { return systole_.shell("cat " + file).out; }

  const SystoleRunner systole_;
};

constexpr const char* kStopTheFirst = "until_said 'waiting for it' second; kill -TERM $first; wait $first; ";

TEST_F(RunWait, resume_goes_on_once_the_other_process_has_ended) {
  for (const char* ranks : {"", "--ranks 2"}) {
    const std::string out = beside_a_run(
        fmt::format("\"$SYSTOLE\" resume r --backend reference {} --set train.steps=2000 --wait 5min >second 2>&1 & "
                    "second=$!; {}wait $second; echo second $?",
                    ranks, kStopTheFirst),
        ranks);
    EXPECT_TRUE(has(out, "second 0\n")) << out << said("second");
    EXPECT_TRUE(has(said("second"), "the folder 'r' is in use by process ")) << said("second");
    EXPECT_TRUE(has(said("second"), "it goes on from the checkpoint of step ")) << said("second");
    EXPECT_TRUE(has(said("second"), "finished at step 2000")) << said("second");
  }
}

TEST_F(RunWait, what_a_scheduler_begins_twice_goes_on_once_the_other_has_ended) {
  const std::string out = beside_a_run(
      std::string("\"$SYSTOLE\" run job.yaml --backend reference --folder r --or-resume --set train.steps=2000 --wait "
                  "5min >second 2>&1 & second=$!; ") +
      kStopTheFirst + "wait $second; echo second $?");
  EXPECT_TRUE(has(out, "second 0\n")) << out << said("second");
  EXPECT_TRUE(has(said("second"), "it goes on from the checkpoint of step ")) << said("second");
}

TEST_F(RunWait, it_ends_with_its_time_or_at_once_by_a_signal) {
  const std::string out = beside_a_run(
      "\"$SYSTOLE\" resume r --wait 300ms 2>late; echo late $?; for signal in TERM INT; do \"$SYSTOLE\" resume r "
      "--wait 10min 2>by-$signal & second=$!; until_said 'waiting for it' by-$signal; kill -$signal $second; wait "
      "$second; "
      "echo $signal $?; done; \"$SYSTOLE\" run job.yaml --folder r --wait 10min 2>anew; echo anew $?; \"$SYSTOLE\" "
      "resume r --wait 0 2>now; echo now $?");
  EXPECT_TRUE(has(out, "late 1\n")) << out;
  EXPECT_TRUE(has(said("late"), "for 300 ms and longer")) << said("late");
  EXPECT_TRUE(has(out, "TERM 76\n")) << out;
  EXPECT_TRUE(has(out, "INT 130\n")) << out;
  EXPECT_TRUE(has(out, "anew 1\n")) << "what it would be refused for in the end it is refused for now" << out;
  EXPECT_TRUE(has(said("anew"), "'r' holds a run already")) << said("anew");
  EXPECT_TRUE(has(out, "now 1\n")) << out;
  EXPECT_FALSE(has(said("now"), "waiting")) << said("now");
  EXPECT_TRUE(has(out, "first 75\n")) << "the other one is not disturbed" << out;
}

TEST_F(RunWait, of_two_that_begin_together_one_waits_for_the_other) {
  systole_.write("job.yaml", replaced(kWorkload, "steps: 4", "steps: 20"));
  const Captured both = systole_.shell(
      "for i in 1 2; do \"$SYSTOLE\" run job.yaml --backend reference --folder runs/r1 --or-resume --inject "
      "forward=50ms --wait 5min >out$i 2>&1 & eval p$i=$!; done; wait $p1; echo first $?; wait $p2; echo second $?");
  EXPECT_TRUE(has(both.out, "first 0\n")) << both.out << said("out1");
  EXPECT_TRUE(has(both.out, "second 0\n")) << both.out << said("out2");
}

TEST_F(RunWait, a_folder_of_checkpoints_is_waited_for) {
  const std::string out = beside_a_run(
      std::string("cp -r r copy; \"$SYSTOLE\" resume copy --backend reference 2>refused; echo refused $?; "
                  "\"$SYSTOLE\" run job.yaml --backend reference --folder other --set checkpoint.folder=\"$PWD/disk\" "
                  "--wait 1s 2>late; echo late $?; for signal in TERM INT; do \"$SYSTOLE\" resume copy --backend "
                  "reference --wait 10min 2>by-$signal & second=$!; until_said 'waiting for it' by-$signal; kill "
                  "-$signal $second; wait $second; echo $signal $?; done; \"$SYSTOLE\" resume copy --backend reference "
                  "--set train.steps=2000 --wait 5min >second 2>&1 & second=$!; ") +
          kStopTheFirst + "wait $second; echo second $?",
      "--set checkpoint.folder=\"$PWD/disk\"");
  EXPECT_TRUE(has(out, "refused 1\n")) << out << said("refused");
  EXPECT_TRUE(has(said("refused"), "hint: wait for it (--wait 10min), stop it (kill ")) << said("refused");
  EXPECT_TRUE(has(out, "late 1\n")) << out << said("late");
  EXPECT_TRUE(has(said("late"), "; waiting for it, 1.00 s at most\n")) << said("late");
  EXPECT_TRUE(has(said("late"), "/disk' is in use by process ")) << said("late");
  EXPECT_TRUE(has(said("late"), ", for 1.00 s and longer\n")) << said("late");
  EXPECT_TRUE(has(out, "TERM 76\n")) << out << said("by-TERM");
  EXPECT_TRUE(has(out, "INT 130\n")) << out << said("by-INT");
  EXPECT_TRUE(has(out, "second 0\n")) << out << said("second");
  EXPECT_TRUE(has(said("second"), "it goes on from the checkpoint of step ")) << said("second");
}

TEST_F(RunWait, a_program_waits_for_the_one_in_its_folder) {
  systole_.write("program.yaml", fmt::format("systole: 1\nname: mine\ncommand: [sh, -c, \"while [ ! -e {}/go ]; do "
                                             "sleep 0.05; done\"]\n",
                                             systole_.folder().string()));
  const Captured ran = systole_.shell(
      "\"$SYSTOLE\" run program.yaml --ranks 1 --folder p >all 2>&1 & first=$!; n=0; while [ $n -lt 1200 ] && [ ! -s "
      "p/workload.yaml ]; do n=$((n+1)); sleep 0.05; done; \"$SYSTOLE\" run program.yaml --ranks 1 --folder p >refused "
      "2>&1; echo refused $?; \"$SYSTOLE\" run program.yaml --ranks 1 --folder p --wait 5min >second 2>&1 & second=$!; "
      "n=0; while [ $n -lt 1200 ] && ! grep -q 'waiting for it' second; do n=$((n+1)); sleep 0.05; done; touch go; "
      "wait "
      "$first; echo first $?; wait $second; echo second $?");
  EXPECT_TRUE(has(ran.out, "refused 1\n")) << ran.out;
  EXPECT_TRUE(has(said("refused"), "hint: wait for it (--wait 10min), stop it (kill ")) << said("refused");
  EXPECT_TRUE(has(ran.out, "first 0\n")) << ran.out << said("all");
  EXPECT_TRUE(has(ran.out, "second 0\n")) << ran.out << said("second");
}

TEST_F(RunWait, is_of_one_folder_on_one_machine) {
  systole_.write("job.yaml", kWorkload);
  const Captured which = systole_.run({"run", "job.yaml", "--wait", "10min"});
  EXPECT_EQ(which.exit.code, 2);
  EXPECT_TRUE(has(which.err, "--wait: for which run?")) << which.err;
  EXPECT_FALSE(std::filesystem::exists(systole_.folder() / "runs"));
  const Captured nodes =
      systole_.run({"run", "job.yaml", "--folder", "r", "--ranks", "2", "--rendezvous", "127.0.0.1:1", "--wait", "1s"});
  EXPECT_EQ(nodes.exit.code, 2);
  EXPECT_TRUE(has(nodes.err, "--wait: of several nodes the one that leads takes the folder")) << nodes.err;
  const Captured nobody =
      systole_.run({"run", "job.yaml", "--backend", "reference", "--folder", "r", "--wait", "10min"});
  EXPECT_EQ(nobody.exit.code, 0) << "where nobody is, nothing is waited for" << nobody.err;
}

}  // namespace
}  // namespace systole::cli
