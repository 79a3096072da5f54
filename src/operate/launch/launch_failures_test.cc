// Failures of ranks on one node. Each ends in a new generation or in one sentence, and leaves nothing behind.
#include <map>

#include "ground/net/rendezvous_server.h"
#include "operate/launch/rank_seat.h"
#include "operate/launch/testing/launch_fixture.h"

namespace systole {
namespace {

class LaunchFailures : public LaunchFixture {
 protected:
  // Calls `act` once all `n` ranks of generation `g` are up.
  void when_up(std::uint64_t g, std::size_t n, std::function<void()> act) {
    on_line = [this, g, n, act = std::move(act)](int rank, const std::string& line) {
      const std::optional<RankUp> up = up_of(line);
      if (!up) return;
      up_[up->generation][rank] = up->pid;
      if (up->generation == g && up_[g].size() == n) act();
    };
  }
  std::map<std::uint64_t, std::map<int, pid_t>> up_;
};

TEST_F(LaunchFailures, kill_minus_nine_of_any_rank_starts_the_next_generation) {
  for (int victim = 0; victim < 3; ++victim) {
    up_.clear();
    told_.clear();
    own("once", 3);
    when_up(1, 3, [&] { ::kill(up_[1][victim], SIGKILL); });
    EXPECT_EQ(run(), (LaunchOutcome{0, "3 ranks finished"}));
    EXPECT_EQ(up_[2].size(), 3u);
    EXPECT_TRUE(has(told_, fmt::format("rank {} was killed by SIGKILL: generation 1 ends", victim))) << told_;
    for (const auto& [rank, pid] : up_[1]) EXPECT_FALSE(runs(pid)) << "rank " << rank << " outlived its generation";
  }
}

TEST_F(LaunchFailures, a_stopped_rank_is_killed_when_its_heartbeat_is_missed) {
  own("once", 2);
  options_.command.env = {{"PROBE_HEARTBEAT", "1"}};
  when_up(1, 2, [&] { ::kill(up_[1][1], SIGSTOP); });
  EXPECT_EQ(run().exit_code, 0);
  EXPECT_TRUE(has(told_, "rank 1 gave no sign of life for ")) << told_;
  EXPECT_FALSE(runs(up_[1][1]));
}

TEST_F(LaunchFailures, a_rank_that_never_takes_its_place_is_named) {
  script("sleep 100", 1);
  options_.membership.own_ranks = true;
  options_.start_time = Seconds(0.3);
  const LaunchOutcome outcome = run();
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_TRUE(has(outcome.sentence, "rank 0 gave no sign of life")) << outcome.sentence;
}

TEST_F(LaunchFailures, a_rank_that_fails_twice_is_left_out_and_the_others_finish) {
  script("test $SYSTOLE_NUM_RANKS = 3 && test $SYSTOLE_RANK = 2 && exit 9; sleep 1", 2, 3);
  EXPECT_EQ(run(), (LaunchOutcome{0, "2 ranks finished"}));
  EXPECT_TRUE(has(told_,
                  "rank 2 ended with exit code 9, 2 times without a checkpoint in between: slot 2 is excluded from now "
                  "on"))
      << told_;
}

TEST_F(LaunchFailures, with_no_rank_to_spare_it_gives_up_and_says_why) {
  script("test $SYSTOLE_RANK = 1 && exit 9; sleep 100", 2);
  EXPECT_EQ(run(),
            (LaunchOutcome{1, "rank 1 ended with exit code 9, 2 times in a row: 1 of the 2 ranks needed are left"}));
}

TEST_F(LaunchFailures, restarts_are_capped) {
  script("kill -9 $$", 2);
  options_.membership.restarts_per_hour = 3;
  std::int64_t checkpoint = 0;
  options_.newest_checkpoint = [&] { return checkpoint++; };
  options_.membership.failures_until_left_out = 100;
  const LaunchOutcome outcome = run();
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_TRUE(has(outcome.sentence, "3 restarts within an hour are as many as allowed")) << outcome.sentence;
  EXPECT_TRUE(has(told_, "generation 4 starts"));
  EXPECT_FALSE(has(told_, "generation 5 starts"));
}

TEST_F(LaunchFailures, what_a_rank_started_ends_with_it) {
  script("sleep 1000 & echo $!; sleep 0.1", 2);
  std::vector<pid_t> grandchildren;
  on_line = [&](int, const std::string& line) { grandchildren.push_back(std::stoi(line)); };
  EXPECT_EQ(run().exit_code, 0);
  ASSERT_EQ(grandchildren.size(), 2u);
  for (const pid_t pid : grandchildren) EXPECT_TRUE(ends_soon(pid));
}

// Reads lines of an agent in a separate process until `n` of them say "up". Returns the pids of these ranks and of
// their children.
std::vector<pid_t> pids_said(Process& agent, std::size_t n) {
  std::vector<pid_t> pids;
  std::string line;
  char c;
  while (pids.size() < n && ::read(agent.out(), &c, 1) == 1) {
    if (c != '\n') {
      line += c;
      continue;
    }
    std::istringstream in(line.substr(std::min(line.find("] ") + 2, line.size())));
    std::string word;
    pid_t pid = -1;
    while (line.starts_with("[rank") && in >> word >> pid) pids.push_back(pid);
    line.clear();
  }
  return pids;
}

TEST_F(LaunchFailures, kill_minus_nine_of_the_agent_leaves_no_orphan_of_any_degree) {
  Process agent = Process::start({.argv = {probe(), "agent", "slots=3", "min=3", "max=3", "own=false",
                                           "logs=" + folder_, "sh", "-c", "sleep 1000 & echo self $$ child $!; wait"},
                                  .out = ChildStream::pipe()})
                      .value();
  const std::vector<pid_t> pids = pids_said(agent, 6);
  ASSERT_EQ(pids.size(), 6u);
  for (const pid_t pid : pids) EXPECT_TRUE(runs(pid));
  EXPECT_TRUE(agent.signal(SIGKILL).ok());  // only the agent, not its group
  agent.wait();
  for (const pid_t pid : pids) EXPECT_TRUE(ends_soon(pid)) << pid;
}

TEST_F(LaunchFailures, a_guard_that_is_killed_is_replaced_before_the_next_rank) {
  std::string said;
  const auto ranks = LocalRanks::make(folder_, [&](int, std::string_view line) { said += line; }).value();
  ASSERT_TRUE(ranks->start(1, 0, {.argv = {"sleep", "1000"}}).ok());
  const Captured found = run_captured({.argv = {"pgrep", "-P", std::to_string(::getpid()), "systole-guard"}}).value();
  if (!found.exit.ok()) GTEST_SKIP() << "no pgrep here";
  const pid_t guard = std::stoi(found.out);
  ::kill(guard, SIGKILL);
  ASSERT_TRUE(ends_soon(guard));
  ASSERT_TRUE(ranks->start(1, 1, {.argv = {"sleep", "1000"}}).ok());
  EXPECT_TRUE(runs(ranks->pid_of(0)));
  EXPECT_TRUE(runs(ranks->pid_of(1)));
}

class Seats : public LaunchFixture {
 protected:
  RankIdentity identity(std::uint64_t generation, int rank, std::string workload = "w") {
    RankIdentity me;
    me.place = {.generation = generation, .rank = rank, .num_ranks = 3};
    me.rendezvous = server_->address();
    me.token = token_;
    me.workload = std::move(workload);
    return me;
  }
  static Result<std::unique_ptr<RankSeat>> take(const RankIdentity& me) {
    return RankSeat::take(me, {.lost = [](const Error&) {}});
  }
  void SetUp() override {
    LaunchFixture::SetUp();
    EXPECT_TRUE(agent_.set("workload", "w").ok());
    EXPECT_TRUE(agent_.fence(1).ok());
  }
  RunToken token_ = RunToken::make().value();
  std::unique_ptr<RendezvousServer> server_ = RendezvousServer::start(token_).value();
  RendezvousClient agent_ = RendezvousClient::connect(server_->address(), token_).value();
};

TEST_F(Seats, a_duplicate_rank_a_late_one_and_one_with_another_workload_are_refused_by_name) {
  const auto seat = take(identity(1, 1)).value();
  const auto twice = take(identity(1, 1));
  ASSERT_FALSE(twice.ok());
  EXPECT_EQ(twice.error().kind, ErrorKind::exists);
  EXPECT_TRUE(has(twice.error().message, "rank 1 of generation 1 is taken")) << twice.error().message;
  EXPECT_TRUE(has(twice.error().message, fmt::format("process {}", ::getpid())));

  const auto other = take(identity(1, 2, "v"));
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().message, "rank 2 runs another workload (v) than this run (w)");

  EXPECT_TRUE(agent_.fence(2).ok());
  const auto old = take(identity(1, 0));
  ASSERT_FALSE(old.ok());
  EXPECT_EQ(old.error().kind, ErrorKind::interrupted);
  EXPECT_EQ(old.error().message, "generation 1 is over: generation 2 runs");
  EXPECT_EQ(seat->rendezvous().set("address", "x").error().kind, ErrorKind::interrupted);
  EXPECT_TRUE(take(identity(2, 1)).ok());
}

TEST_F(Seats, who_does_not_come_is_named) {
  const auto seat = take(identity(1, 1)).value();
  const Status all = seat->wait_for_all("start", Seconds(0.05));
  ASSERT_FALSE(all.ok());
  EXPECT_EQ(all.error().message, "ranks are missing: 2 of 3 did not come to barrier 'start' within 50.0 ms: 0, 2");
}

}  // namespace
}  // namespace systole
