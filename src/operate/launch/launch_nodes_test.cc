// Several agents that find each other over TCP on 127.0.0.1. Each is a process, except the test's own.
#include <thread>

#include "operate/launch/testing/launch_fixture.h"

namespace systole {
namespace {

class LaunchNodes : public LaunchFixture {
 protected:
  void SetUp() override {
    LaunchFixture::SetUp();
    options_.node = "a";
    options_.rendezvous = {"127.0.0.1", free_port().value()};
    options_.token = RunToken::make().value();
    options_.heartbeat = Seconds(3.0);
    options_.workload = "w";
  }
  // An agent of the same run on another node, which comes second unless told otherwise; its output goes to a file.
  Process other_node(const std::string& name, int slots, std::vector<std::string> more = {}) {
    std::vector<std::string> argv = {probe(),
                                     "agent",
                                     "node=" + name,
                                     "follows=true",
                                     fmt::format("slots={}", slots),
                                     "workload=w",
                                     "rendezvous=" + to_string(options_.rendezvous),
                                     "token=" + options_.token->hex(),
                                     "logs=" + folder_,
                                     "heartbeat=3",
                                     fmt::format("min={}", options_.membership.min_ranks),
                                     fmt::format("max={}", options_.membership.max_ranks),
                                     fmt::format("own={}", options_.membership.own_ranks),
                                     fmt::format("tls={}", options_.tls)};
    argv.insert(argv.end(), more.begin(), more.end());
    argv.insert(argv.end(), options_.command.argv.begin(), options_.command.argv.end());
    return Process::start({.argv = argv, .out = ChildStream::file(folder_ + "/" + name + ".out")}).value();
  }
  std::string output_of(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(folder_ + "/" + name + ".out").rdbuf();
    return text.str();
  }
  // 4 ranks, 2 of them on this node.
  void two_and_two(int least) {
    ranks(least, 4);
    options_.slots = 2;
  }
};

TEST_F(LaunchNodes, two_agents_find_each_other_and_run_one_job) {
  own("finish", 4);
  two_and_two(4);
  Process b = other_node("b", 2);
  EXPECT_EQ(run(), (LaunchOutcome{0, "4 ranks finished"}));
  EXPECT_EQ(b.wait().code, 0) << output_of("b");
  EXPECT_TRUE(has(told_, "node b joined with room for 2\n"));
  EXPECT_TRUE(has(output_of("b"), "[rank 3] up ")) << output_of("b");
  EXPECT_TRUE(has(said_, "[rank 1] up ")) << said_;
  EXPECT_FALSE(has(said_, "[rank 2]")) << "that one is b's";
}

TEST_F(LaunchNodes, a_users_program_is_told_one_address_on_all_nodes) {
  script("echo $RANK $LOCAL_RANK $GROUP_RANK $WORLD_SIZE $MASTER_ADDR $MASTER_PORT", 4);
  two_and_two(4);
  Process b = other_node("b", 2);
  EXPECT_EQ(run().exit_code, 0);
  EXPECT_EQ(b.wait().code, 0) << output_of("b");
  const std::string address = log(1, 0).substr(std::string("0 0 0 4 ").size());
  EXPECT_GT(address.size(), 12u);
  EXPECT_EQ(log(1, 3), "3 1 1 4 " + address);
}

TEST_F(LaunchNodes, when_a_node_is_killed_the_others_go_on_without_it) {
  own("once", 2, 4);
  two_and_two(2);
  options_.membership.settle_time = Seconds(30.0);  // until both have joined
  Process b = other_node("b", 2);
  int up = 0;
  on_line = [&](int, const std::string& line) {
    const std::optional<RankUp> rank = up_of(line);
    if (rank && rank->generation == 1 && ++up == 2) {
      while (!has(output_of("b"), "[rank 3] up ")) ::usleep(10'000);
      EXPECT_TRUE(b.signal(SIGKILL).ok());
    }
  };
  EXPECT_EQ(run(), (LaunchOutcome{0, "2 ranks finished"}));
  EXPECT_TRUE(has(told_, "node b is gone (its lease ran out), with 2 ranks: generation 1 ends")) << told_;
  b.wait();
  std::istringstream lines(output_of("b"));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t at = line.find("] up ");
    if (at != std::string::npos) { EXPECT_TRUE(ends_soon(up_of(line.substr(at + 2))->pid)) << line; }
  }
}

TEST_F(LaunchNodes, a_node_that_is_asked_to_go_lets_all_save_and_leaves) {
  own("once", 2, 4);
  two_and_two(2);
  options_.membership.settle_time = Seconds(30.0);
  Process b = other_node("b", 2);
  int up = 0;
  on_line = [&](int, const std::string& line) {
    const std::optional<RankUp> rank = up_of(line);
    if (rank && rank->generation == 1 && ++up == 2) {
      while (!has(output_of("b"), "[rank 3] up ")) ::usleep(10'000);
      EXPECT_TRUE(b.signal(SIGTERM).ok());
    }
    if (rank && rank->generation == 2) {
      EXPECT_TRUE(b.wait(Seconds(30.0)).has_value()) << "gone while the others go on";
    }
  };
  EXPECT_EQ(run(), (LaunchOutcome{0, "2 ranks finished"}));
  EXPECT_TRUE(has(told_, "node b is asked to go: generation 1 saves and goes on without it")) << told_;
  EXPECT_EQ(b.wait().code, 75) << output_of("b");
}

TEST_F(LaunchNodes, a_node_with_another_workload_or_token_or_name_that_is_taken_is_refused) {
  own("finish", 4);
  two_and_two(4);
  std::vector<std::string> reasons;
  std::jthread others([&] {
    Process workload = other_node("v", 2, {"workload=v"});
    workload.wait();
    Process token = other_node("t", 2, {"token=" + RunToken::make().value().hex()});
    token.wait();
    Process b = other_node("b", 2);
    b.wait();
  });
  EXPECT_EQ(run().exit_code, 0);
  others.join();
  EXPECT_TRUE(has(output_of("v"), "node v runs another workload (v) than this run (w)")) << output_of("v");
  EXPECT_TRUE(has(output_of("t"), "without answering our token")) << output_of("t");
  EXPECT_TRUE(has(output_of("b"), "outcome 0 4 ranks finished")) << output_of("b");
}

TEST_F(LaunchNodes, over_tls_nodes_and_ranks_meet_and_one_without_or_with_another_token_is_refused) {
  own("finish", 4);
  two_and_two(4);
  options_.tls = true;
  std::jthread others([&] {
    Process plain = other_node("p", 2, {"tls=false"});
    plain.wait();
    Process token = other_node("t", 2, {"token=" + RunToken::make().value().hex()});
    token.wait();
    Process b = other_node("b", 2);
    b.wait();
  });
  EXPECT_EQ(run(), (LaunchOutcome{0, "4 ranks finished"}));
  others.join();
  EXPECT_TRUE(has(output_of("p"), " runs with ranks.tls, and this node without")) << output_of("p");
  EXPECT_TRUE(has(output_of("p"), "hint: --set ranks.tls=true here too, and a new token")) << output_of("p");
  EXPECT_TRUE(has(output_of("t"), "holds the key of another token")) << output_of("t");
  EXPECT_TRUE(has(output_of("b"), "outcome 0 4 ranks finished")) << output_of("b");
}

TEST_F(LaunchNodes, one_with_tls_is_refused_by_a_run_without) {
  own("finish", 4);
  two_and_two(4);
  std::jthread others([&] {
    Process encrypts = other_node("e", 2, {"tls=true"});
    encrypts.wait();
    Process b = other_node("b", 2);
    b.wait();
  });
  EXPECT_EQ(run().exit_code, 0);
  others.join();
  EXPECT_TRUE(has(output_of("e"), "this node runs with ranks.tls, and the rendezvous at ")) << output_of("e");
  EXPECT_TRUE(has(output_of("e"), "hint: --set ranks.tls=true where it leads too, or false on all nodes"))
      << output_of("e");
}

TEST_F(LaunchNodes, when_the_leader_is_killed_no_rank_of_a_follower_lives_on) {
  own("hold", 4);
  two_and_two(4);
  Process leader = other_node("l", 2, {"follows=false"});
  while (!connect_to(options_.rendezvous, deadline_after(Seconds(20.0))).ok()) ::usleep(10'000);
  int up = 0;
  std::vector<pid_t> pids;
  on_line = [&](int, const std::string& line) {
    const std::optional<RankUp> rank = up_of(line);
    if (rank) pids.push_back(rank->pid);
    if (rank && ++up == 2) { EXPECT_TRUE(leader.signal(SIGKILL).ok()); }
  };
  const LaunchOutcome outcome = run();  // this one follows
  EXPECT_EQ(outcome.exit_code, 76);
  EXPECT_TRUE(has(outcome.sentence, "this node's ranks ended: ")) << outcome.sentence;
  ASSERT_EQ(pids.size(), 2u);
  for (const pid_t pid : pids) EXPECT_FALSE(runs(pid));
  leader.wait();
}

}  // namespace
}  // namespace systole
