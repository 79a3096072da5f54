// `systole run` of workloads with `command`: always small shell programs; with SYSTOLE_TEST_LONG a PyTorch DDP script
// and a jax.distributed script, with the packages that tools/oracles/install puts into the build folder.
#include <gtest/gtest.h>

#include <cstdlib>

#include "ground/base/testing/places.h"
#include "operate/cli/testing/run_systole.h"

namespace systole::cli {
namespace {

std::string program(const std::string& script) {
  return "systole: 1\nname: mine\ncommand: [sh, -c, \"" + script + "\"]\n";
}
bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(RunProgram, four_ranks_each_with_its_log) {
  const SystoleRunner systole;
  systole.write("job.yaml", program("echo hello from $RANK of $WORLD_SIZE"));
  const Captured done = systole.run({"run", "job.yaml", "--ranks", "4"});
  EXPECT_EQ(done.exit.code, 0) << done.err;
  EXPECT_EQ(done.out, "4 ranks finished\n");
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_TRUE(has(done.err, fmt::format("[rank {0}] hello from {0} of 4\n", rank))) << done.err;
    std::ifstream log(systole.folder() / fmt::format("runs/mine-1/logs/rank-{}.generation-1.log", rank));
    std::string line;
    std::getline(log, line);
    EXPECT_EQ(line, fmt::format("hello from {} of 4", rank));
  }
}

TEST(RunProgram, a_failure_ends_with_one_sentence_that_names_the_rank) {
  const SystoleRunner systole;
  systole.write("job.yaml", program("test $RANK = 1 && exit 9; sleep 100"));
  const Captured failed = systole.run({"run", "job.yaml", "--ranks", "2", "--folder", "here"});
  EXPECT_EQ(failed.exit.code, 1);
  EXPECT_EQ(
      failed.out,
      "rank 1 ended with exit code 9, 2 times in a row: 1 of the 2 ranks needed are left; logs are in here/logs\n");
  EXPECT_TRUE(has(failed.err, "generation 2 starts with 2 ranks")) << failed.err;
}

TEST(RunProgram, elastic_runs_go_on_with_fewer) {
  const SystoleRunner systole;
  systole.write("job.yaml", program("test $WORLD_SIZE = 3 && test $RANK = 2 && kill -9 $$; sleep 0.2"));
  const Captured done = systole.run({"run", "job.yaml", "--ranks", "2:3"});
  EXPECT_EQ(done.exit.code, 0) << done.err;
  EXPECT_EQ(done.out, "2 ranks finished\n");
  EXPECT_TRUE(has(done.err, "slot 2 is excluded from now on")) << done.err;
}

TEST(RunProgram, a_signal_is_passed_on) {
  const SystoleRunner systole;
  systole.write("job.yaml", program("trap 'echo saved; exit 0' TERM; echo up; while :; do sleep 0.05; done"));
  const Captured done = systole.shell(
      "\"$SYSTOLE\" run job.yaml --ranks 2 --folder here 2>err & pid=$!; n=0; "
      "while [ $n -lt 600 ] && [ \"$(cat here/logs/* 2>/dev/null | grep -c up)\" != 2 ]; do n=$((n+1)); sleep 0.05; "
      "done; "
      "kill -TERM $pid; wait $pid; echo code $?; cat err");
  EXPECT_TRUE(has(done.out, "code 75\n")) << done.out;
  EXPECT_TRUE(has(done.out, "[rank 0] saved\n")) << done.out;
  EXPECT_TRUE(has(done.out, "[rank 1] saved\n"));
}

TEST(RunProgram, what_is_asked_wrongly_is_said_before_anything_starts) {
  const SystoleRunner systole;
  systole.write("job.yaml", program("true"));
  const auto expect = [&](std::vector<std::string> words, int code, const std::string& part) {
    words.insert(words.begin(), {"run", "job.yaml"});
    const Captured said = systole.run(words);
    EXPECT_EQ(said.exit.code, code) << said.err;
    EXPECT_TRUE(has(said.err, part)) << said.err;
  };
  expect({"--ranks", "0"}, 2, "--ranks: '0' is no number of ranks");
  expect({"--ranks", "8:2"}, 2, "--ranks 2:8");
  expect({"--ranks", "2", "--token-file", "t"}, 2, "add --rendezvous host:port");
  expect({"--ranks", "2", "--rendezvous", "127.0.0.1:0"}, 2, "needs a port that all nodes know");
  expect({"--ranks", "2", "--rendezvous", "127.0.0.1:7000"}, 2, "needs the token that they share");
  expect({"--ranks", "2", "--memory", "1GiB"}, 2, "--memory means nothing for a program of your own");
  systole.write("job.yaml", "systole: 1\nname: mine\ncommand: no-such-program-anywhere\n");
  expect({"--ranks", "2"}, 2, "no program 'no-such-program-anywhere' in PATH");
  EXPECT_FALSE(std::filesystem::exists(systole.folder() / "runs")) << "nothing was started";
}

TEST(RunProgram, other_commands_refuse_it_and_check_takes_it) {
  const SystoleRunner systole;
  systole.write("job.yaml", program("true"));
  const Captured plan = systole.run({"plan", "job.yaml"});
  EXPECT_EQ(plan.exit.code, 2);
  EXPECT_TRUE(has(plan.err, "hint: systole run job.yaml --ranks 2")) << plan.err;
  const Captured checked = systole.run({"check", "job.yaml"});
  EXPECT_EQ(checked.exit.code, 0);
  EXPECT_TRUE(has(checked.out, "job.yaml: OK: runs /")) << checked.out;
  const Captured dry = systole.run({"run", "job.yaml", "--ranks", "2:8", "--dry-run"});
  EXPECT_EQ(dry.out, "would start 2 to 8 ranks of: sh -c true\n");
}

// Its run has no model: commands for models refuse it, rather than report lost files.
TEST(RunProgram, commands_of_a_model_refuse_its_run) {
  const SystoleRunner systole;
  systole.write("job.yaml", program("true"));
  ASSERT_EQ(systole.run({"run", "job.yaml", "--ranks", "1"}).exit.code, 0);
  const std::vector<std::vector<std::string>> all{
      {"generate", "mine-1"},
      {"generate", "runs/mine-1"},
      {"generate"},
      {"ckpt", "list", "mine-1"},
      {"ckpt", "show", "mine-1@4"},
      {"ckpt", "verify", "mine-1"},
      {"ckpt", "diff", "mine-1", "mine-1"},
      {"ckpt", "export", "mine-1", "out.safetensors"},
      {"ckpt", "export", "mine-1", "--to", "out"},
      {"ckpt", "bless", "mine-1@4"},
      {"ckpt", "reshard", "mine-1", "--mesh", "data=2"},
  };
  for (const std::vector<std::string>& words : all) {
    const Captured said = systole.run(words);
    EXPECT_EQ(said.exit.code, 2) << words[0] << ": " << said.err;
    EXPECT_EQ(said.err,
              "error: 'runs/mine-1' is of a program of your own (command): its model and checkpoints are not known "
              "here\n"
              "  hint: name a run of a model: 'systole runs' lists those there are; runs/mine-1/logs has what it "
              "printed\n")
        << words[0];
  }
}

class FromPyPI : public testing::Test {
 protected:
  // A script of examples/ with four ranks and the packages of one section.
  std::string run_example(const std::string& name, const std::string& section) {
    const std::string source = SYSTOLE_SOURCE_DIR, packages = SYSTOLE_BINARY_DIR "/oracles/" + section;
    CaptureOptions options;
    options.timeout = Seconds(3600.0);
    const Captured installed =
        run_captured({.argv = {source + "/tools/oracles/install", section, packages}}, options).value();
    EXPECT_TRUE(installed.exit.ok()) << installed.err;
    const SystoleRunner systole;
    const Captured done =
        run_captured({.argv = {SYSTOLE_BINARY_DIR "/src/operate/cli/systole", "run", "examples/" + name + ".yaml",
                               "--ranks", "4", "--folder", (systole.folder() / "run").string()},
                      .env = {{"PYTHONPATH", packages}, {"JAX_PLATFORMS", "cpu"}},
                      .cwd = source},
                     options)
            .value();
    EXPECT_EQ(done.exit.code, 0) << done.err;
    EXPECT_EQ(done.out, "4 ranks finished\n");
    return done.err;
  }
  void SetUp() override {
    if (std::getenv("SYSTOLE_TEST_LONG") == nullptr) GTEST_SKIP() << "make test-long runs it: packages from PyPI";
  }
};

TEST_F(FromPyPI, a_pytorch_ddp_script_runs_on_four_ranks) {
  const std::string said = run_example("ddp", "large");
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_TRUE(has(said, fmt::format("[rank {0}] rank {0} of 4: loss 0.0", rank))) << said;
  }
  EXPECT_FALSE(has(said, "all: False")) << said;
}

TEST_F(FromPyPI, a_jax_distributed_script_runs_on_four_ranks) {
  const std::string said = run_example("jax_distributed", "jax");
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_TRUE(has(said, fmt::format("[rank {0}] rank {0} of 4: 4 devices, sum 18.0", rank))) << said;
  }
}

}  // namespace
}  // namespace systole::cli
