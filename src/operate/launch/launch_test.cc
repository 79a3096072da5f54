#include "operate/launch/launch.h"

#include "operate/launch/testing/launch_fixture.h"

namespace systole {
namespace {

using Launches = LaunchFixture;

TEST_F(Launches, ranks_run_and_what_they_say_is_kept_by_rank_and_generation) {
  script("echo I am $SYSTOLE_RANK of $SYSTOLE_NUM_RANKS; echo to stderr >&2; printf 'no newline'", 3);
  EXPECT_EQ(run(), (LaunchOutcome{0, "3 ranks finished"}));
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(log(1, rank), fmt::format("I am {} of 3\nto stderr\nno newline", rank));
    EXPECT_TRUE(has(said_, fmt::format("[rank {0}] I am {0} of 3\n", rank)));
    EXPECT_TRUE(has(said_, fmt::format("[rank {}] no newline\n", rank)));
  }
  EXPECT_EQ(told_, "generation 1 starts with 3 ranks\n");
}

TEST_F(Launches, a_users_program_finds_what_torchrun_and_jax_give) {
  script("env | sort", 2);
  options_.run = "run-7";
  EXPECT_EQ(run().exit_code, 0);
  const std::string one = log(1, 1);
  for (const char* line : {"RANK=1\n", "LOCAL_RANK=1\n", "WORLD_SIZE=2\n", "LOCAL_WORLD_SIZE=2\n", "GROUP_RANK=0\n",
                           "MASTER_ADDR=127.0.0.1\n", "TORCHELASTIC_RESTART_COUNT=0\n", "TORCHELASTIC_RUN_ID=run-7\n",
                           "TORCHELASTIC_USE_AGENT_STORE=False\n", "JAX_NUM_PROCESSES=2\n", "JAX_PROCESS_ID=1\n"}) {
    EXPECT_TRUE(has(one, std::string("\n") + line)) << line;
  }
  const auto line_of = [](const std::string& text, const std::string& name) {
    const std::size_t at = text.find("\n" + name + "=");
    return at == std::string::npos ? std::string() : text.substr(at, text.find('\n', at + 1) - at);
  };
  for (const char* name : {"MASTER_PORT", "JAX_COORDINATOR_ADDRESS"}) {
    EXPECT_GT(line_of(one, name).size(), std::string(name).size() + 3);
    EXPECT_EQ(line_of(one, name), line_of(log(1, 0), name)) << "all ranks are told the same";
  }
  EXPECT_FALSE(has(one, "SYSTOLE_TOKEN")) << "the run's secret is not a user's program's";
}

TEST_F(Launches, the_command_is_looked_for_before_anything_starts) {
  script("true", 2);
  options_.command.argv = {"no-such-program-anywhere"};
  const Result<LaunchOutcome> outcome = launch(options_);
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().kind, ErrorKind::not_found);
}

TEST_F(Launches, signals_are_passed_on_and_ranks_may_save) {
  script("trap 'echo saving; exit 75' TERM; echo ready; while :; do sleep 0.01; done", 2);
  int ready = 0;
  on_line = [&](int, const std::string& line) {
    if (line == "ready" && ++ready == 2) stop_ = {1, SIGTERM};
  };
  EXPECT_EQ(run(), (LaunchOutcome{75, "stopped with its state saved"}));
  EXPECT_TRUE(has(said_, "[rank 0] saving\n"));
  EXPECT_TRUE(has(said_, "[rank 1] saving\n"));
}

TEST_F(Launches, a_rank_that_does_not_listen_is_killed_when_its_notice_is_over) {
  script("trap '' TERM; echo ready; while :; do sleep 0.01; done", 2);
  options_.membership.notice = Seconds(0.3);
  on_line = [&](int, const std::string&) { stop_ = {1, SIGTERM}; };
  EXPECT_EQ(run().exit_code, 76);
  EXPECT_TRUE(has(told_, "did not end within 300 ms of being asked to: killed")) << told_;
}

TEST_F(Launches, a_second_signal_ends_it_at_once) {
  script("trap '' TERM INT; echo ready; while :; do sleep 0.01; done", 2);
  on_line = [&](int, const std::string&) { stop_ = {2, SIGINT}; };
  EXPECT_EQ(run().exit_code, 130);
}

TEST_F(Launches, our_own_ranks_answers_are_the_runs_answer) {
  for (const int code : {1, 2, 3}) {
    script(fmt::format("test $SYSTOLE_RANK = 1 && exit {}; sleep 100", code), 2);
    options_.membership.own_ranks = true;
    EXPECT_EQ(run(), (LaunchOutcome{code, fmt::format("rank 1 ended with exit code {}", code)}));
  }
}

TEST_F(Launches, a_line_without_end_is_cut_for_the_terminal_and_whole_in_the_file) {
  script("head -c 100000 /dev/zero | tr '\\0' x", 1);
  EXPECT_EQ(run().exit_code, 0);
  EXPECT_EQ(log(1, 0), std::string(100'000, 'x'));
  EXPECT_EQ(std::count(said_.begin(), said_.end(), 'x'), 100'000);
  EXPECT_EQ(std::count(said_.begin(), said_.end(), '\n'), 7);
}

}  // namespace
}  // namespace systole
