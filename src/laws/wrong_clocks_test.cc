// Clocks that disagree by an hour, steady and calendar, between ranks and between agents, change neither the named
// rank, nor the reported durations, nor the run's bits.

#include <csignal>

#include "ground/net/socket.h"
#include "laws/ranked_job.h"

namespace systole::laws {
namespace {

class WrongClocks : public RankedRuns {
 protected:
  static constexpr std::int64_t kSteps = 40;
  std::string undisturbed(const std::vector<std::string>& more) const {
    const Captured ran = shop_.systole(words("whole", more));
    EXPECT_EQ(ran.exit.code, 0) << ran.err;
    return shop_.state_hash("whole", kSteps);
  }
  template <typename Body>
  std::vector<Body> told_by_agent(const std::string& run) const {
    std::vector<Body> all;
    for (const Event& event : agent_events(run)) {
      if (const auto* body = std::get_if<Body>(&event.body)) all.push_back(*body);
    }
    return all;
  }
};

TEST_F(WrongClocks, the_slow_rank_and_its_stage_are_named_as_ever) {
  const std::vector<std::string> three{"--ranks", "3", "--set", "train.batch=6"};
  const std::string whole = undisturbed(three);
  for (const char* wrong : {"rank1.clock=1h,rank2.clock=-1h", "rank0.clock=1h", "clock=-1h,rank1.clock=1h"}) {
    std::vector<std::string> all = three;
    all.insert(all.end(), {"--inject", std::string(wrong) + ",rank1.backward=120ms+12"});
    const Captured ran = shop_.systole(words("slow", all));
    ASSERT_EQ(ran.exit.code, 0) << wrong << "\n" << ran.err;
    const auto held = told_by_agent<StragglerFound>("slow");
    ASSERT_FALSE(held.empty()) << wrong;
    for (const StragglerFound& h : held) {
      EXPECT_EQ(h.text.starts_with("rank 1 is slow: backward of step "), true) << wrong << ": " << h.text;
      EXPECT_LT(h.took.count(), 5) << wrong;
    }
    EXPECT_EQ(shop_.state_hash("slow", kSteps), whole) << wrong;
    const Captured why = shop_.systole({"why", "slow"});
    EXPECT_NE(why.out.find("rank 1 held the others up in backward: "), std::string::npos) << why.out;
    std::filesystem::remove_all(shop_.path("slow"));
  }
}

TEST_F(WrongClocks, a_recovery_takes_as_long_as_it_takes) {
  const std::string whole = undisturbed({"--ranks", "2"});
  for (const char* wrong : {"rank1.clock=1h", "rank1.clock=-1h"}) {
    Process agent = start("back", words("back", {"--ranks", "2", "--inject", std::string(wrong) + ",compute=20ms"}));
    ASSERT_TRUE(wait_for_step(agent, "back", 9)) << said("back");
    ASSERT_EQ(::kill(pid_of_rank(agent.pid(), 1), SIGKILL), 0);
    ASSERT_EQ(agent.wait().code, 0) << said("back");
    const auto recovered = told_by_agent<Recovered>("back");
    ASSERT_EQ(recovered.size(), 1u) << said("back");
    const Recovered& r = recovered.front();
    EXPECT_LT(r.detected.count(), 2) << wrong;
    for (const Seconds part : {r.detected, r.ended, r.restarted, r.restored, r.stepped})
      EXPECT_TRUE(part.count() >= 0 && part.count() < 30) << wrong << ": " << to_string(part);
    EXPECT_EQ(shop_.state_hash("back", kSteps), whole) << wrong;
    std::filesystem::remove_all(shop_.path("back"));
    std::filesystem::remove(shop_.path("back.err"));
    std::filesystem::remove(shop_.path("back.out"));
  }
}

// Leases and timeouts use the clock of their keeper.
TEST_F(WrongClocks, two_agents_train_one_job) {
  const std::string whole = undisturbed({"--ranks", "4"});
  shop_.write_secret("token", "00112233445566778899aabbccddeeff\n");
  const int port = free_port().value();
  const auto node = [&](const std::string& name, const std::string& inject) {
    return words(
        "run", {"--ranks", "4", "--local-ranks", "2", "--rendezvous", fmt::format("127.0.0.1:{}", port), "--token-file",
                "token", "--node", name, "--host", "127.0.0.1", "--set", "ranks.patience=10s", "--inject", inject});
  };
  Process a = start("a", node("a", "clock=-1h,compute=10ms"));
  Process b = start("b", node("b", "clock=1h,compute=10ms"));
  const std::optional<Exit> first = a.wait(Seconds(90.0)), second = b.wait(Seconds(90.0));
  ASSERT_TRUE(first && second) << said("a") << said("b");
  EXPECT_EQ(first->code, 0) << said("a") << said("b");
  EXPECT_EQ(second->code, 0) << said("a") << said("b");
  EXPECT_EQ(said("a").find("generation 2"), std::string::npos) << said("a");
  EXPECT_TRUE(told_by_agent<StragglerFound>("run").empty()) << said("a");
  EXPECT_EQ(canonical_steps(events("run")).size(), static_cast<std::size_t>(kSteps));
  EXPECT_EQ(shop_.state_hash("run", kSteps), whole);
}

}  // namespace
}  // namespace systole::laws
