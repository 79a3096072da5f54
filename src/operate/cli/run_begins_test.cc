// `systole run --or-resume`: one command that a scheduler repeats, on every node; and one plan for many seeds.
#include <gtest/gtest.h>

#include "operate/cli/testing/run_systole.h"

namespace systole::cli {
namespace {

constexpr const char* kJob =
    "systole: 1\nname: line\nmodel: { family: mlp, inputs: 8, hidden: [], outputs: 2, loss: squared_error }\n"
    "data: { kind: linear, rows: 64, held_out_rows: 0, noise: 0.1 }\n"
    "train: { batch: 8, steps: 20, optimizer: { kind: sgd, rate: 0.01 } }\ncheckpoint: { every: 5 }\n";

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class RunBegins : public testing::Test {
 protected:
  void SetUp() override { systole_.write("job.yaml", kJob); }
  Captured run(std::vector<std::string> more) const {
    more.insert(more.begin(), {"run", "job.yaml", "--folder", "here", "--or-resume"});
    return systole_.run(more);
  }
  SystoleRunner systole_;
};

TEST_F(RunBegins, the_same_words_begin_a_run_and_go_on_with_it) {
  const Captured killed = run({"--inject", "kill=compute@12"});
  EXPECT_NE(killed.exit.signal, 0) << killed.err;
  const Captured done = run({});
  EXPECT_EQ(done.exit.code, 0) << done.err;
  EXPECT_TRUE(has(done.out, "finished at step 20, 160 rows seen")) << done.out;
  const Captured seen = systole_.run({"logs", "here"});
  EXPECT_FALSE(has(done.out, "step 5:")) << "from step 10, not from the beginning: " << done.out;
  const Captured again = run({});
  EXPECT_EQ(again.exit.code, 0) << again.err;
  EXPECT_TRUE(has(again.out, "finished at step 20")) << again.out;
}

TEST_F(RunBegins, a_folder_of_another_workload_is_refused) {
  ASSERT_EQ(run({}).exit.code, 0);
  const Captured other = run({"--set", "train.batch=4"});
  EXPECT_EQ(other.exit.code, 2) << other.err;
  EXPECT_TRUE(has(other.err, "'here' holds a run of a workload with other numbers")) << other.err;
  EXPECT_EQ(run({"--set", "train.steps=30"}).exit.code, 0) << "a run may be made longer";
  const Captured nowhere = systole_.run({"run", "job.yaml", "--or-resume"});
  EXPECT_EQ(nowhere.exit.code, 2);
  EXPECT_TRUE(has(nowhere.err, "--folder: the same each time")) << nowhere.err;
}

TEST_F(RunBegins, one_plan_runs_with_every_seed_and_nothing_else) {
  ASSERT_EQ(systole_.run({"plan", "job.yaml", "--out", "plan.json"}).exit.code, 0);
  const auto of = [&](const char* set, const char* folder) {
    return systole_.run({"run", "--plan", "plan.json", "--set", set, "--folder", folder});
  };
  ASSERT_EQ(of("train.seed=1", "one").exit.code, 0);
  ASSERT_EQ(of("train.seed=1", "one-again").exit.code, 0);
  ASSERT_EQ(of("train.seed=2", "two").exit.code, 0);
  EXPECT_EQ(systole_.run({"ckpt", "diff", "one", "one-again"}).exit.code, 0);
  EXPECT_EQ(systole_.run({"ckpt", "diff", "one", "two"}).exit.code, 1);
  const Captured other = of("train.batch=4", "other");
  EXPECT_EQ(other.exit.code, 2);
  EXPECT_TRUE(has(other.err, "the plan says all but the seed")) << other.err;
}

TEST_F(RunBegins, a_program_on_two_nodes_has_one_folder) {
  systole_.write("own.yaml", "systole: 1\nname: own\ncommand: [sh, -c, \"echo $RANK of $WORLD_SIZE\"]\n");
  const Captured done = systole_.shell(
      "umask 077; od -An -tx1 -N16 /dev/urandom | tr -d ' \\n' > token; port=$((20000 + $$ % 10000)); go() { "
      "\"$SYSTOLE\" run "
      "own.yaml --ranks 2 --local-ranks 1 --rendezvous 127.0.0.1:$port --token-file token --node $1 --host 127.0.0.1 "
      "--folder both --or-resume; }; go a >a 2>&1 & first=$!; go b >b 2>&1; second=$?; wait $first; echo $? $second; "
      "cat a b; cat both/logs/*");
  EXPECT_TRUE(has(done.out, "0 0\n")) << done.out;
  EXPECT_TRUE(has(done.out, "\n0 of 2\n")) << done.out;
  EXPECT_TRUE(has(done.out, "\n1 of 2\n")) << done.out;
}

}  // namespace
}  // namespace systole::cli
