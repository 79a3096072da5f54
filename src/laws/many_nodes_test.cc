// Two agents on loopback, with two ranks each, train one job over TCP.

#include <csignal>
#include <fstream>
#include <iterator>
#include <thread>

#include "ground/net/socket.h"
#include "ground/net/testing/tapped_port.h"
#include "laws/ranked_job.h"

namespace systole::laws {
namespace {

class ManyNodes : public RankedRuns {
 protected:
  static bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }
  void SetUp() override {
    RankedRuns::SetUp();
    shop_.write_secret("token", std::string(kToken) + "\n");
    port_ = free_port().value();
  }
  std::vector<std::string> node(const std::string& name, std::vector<std::string> more = {},
                                const std::string& host = "127.0.0.1") const {
    std::vector<std::string> all =
        words("run", {"--ranks", "4", "--local-ranks", "2", "--rendezvous", fmt::format("127.0.0.1:{}", port_),
                      "--token-file", "token", "--node", name, "--host", host});
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  static constexpr const char* kToken = "00112233445566778899aabbccddeeff";
  int port_ = 0;
};

TEST_F(ManyNodes, two_agents_train_one_job) {
  ASSERT_EQ(shop_.systole(words("one", {"--ranks", "4"})).exit.code, 0);
  Process a = start("a", node("a"));
  Process b = start("b", node("b"));
  const std::optional<Exit> first = a.wait(Seconds(90.0)), second = b.wait(Seconds(90.0));
  ASSERT_TRUE(first && second) << said("a") << said("b");
  EXPECT_EQ(first->code, 0) << said("a") << said("b");
  EXPECT_EQ(second->code, 0) << said("a") << said("b");
  EXPECT_EQ(canonical_steps(events("run")).size(), 40u);
  EXPECT_EQ(shop_.state_hash("run", 40), shop_.state_hash("one", 40)) << "TCP gives the bits of shared memory";
  const Captured why = shop_.systole({"why", "run"});
  EXPECT_TRUE(has(why.out, "rank 3")) << why.out;
}

// The second node reaches the first through a recording proxy. Traffic between ranks is recorded in
// execute/comm/tcp_transport_test.cc.
TEST_F(ManyNodes, over_tls_the_bits_are_the_same_and_no_token_passes_readable) {
  ASSERT_EQ(shop_.systole(words("one", {"--ranks", "4"})).exit.code, 0);
  Process a = start("a", node("a", {"--set", "ranks.tls=true"}));
  ASSERT_TRUE(wait_until(a, [&] { return has(said("a"), "run on 4 ranks"); })) << said("a");
  TappedPort tap({"127.0.0.1", port_});
  port_ = tap.address().port;
  Process b = start("b", node("b", {"--follow", "--set", "ranks.tls=true"}));
  const std::optional<Exit> first = a.wait(Seconds(90.0)), second = b.wait(Seconds(90.0));
  ASSERT_TRUE(first && second) << said("a") << said("b");
  EXPECT_EQ(first->code, 0) << said("a") << said("b");
  EXPECT_EQ(second->code, 0) << said("a") << said("b");
  EXPECT_EQ(canonical_steps(events("run")).size(), 40u);
  EXPECT_EQ(shop_.state_hash("run", 40), shop_.state_hash("one", 40));
  EXPECT_GT(tap.num_bytes(), 1000u);
  EXPECT_FALSE(tap.heard(RunToken::parse(kToken).value()));
  EXPECT_FALSE(tap.heard("SYSRDV"));
}

// Every other address of 127.0.0.0/8 also belongs to this machine, so nodes can have different addresses.
TEST_F(ManyNodes, ranks_meet_where_their_nodes_are_reached) {
  Process a = start("a", node("a", {"--inject", "compute=25ms"}, "127.0.0.2"));
  ASSERT_TRUE(wait_until(a, [&] { return has(said("a"), "run on 4 ranks"); })) << said("a");
  Process b = start("b", node("b", {"--inject", "compute=25ms"}, "127.0.0.3"));
  ASSERT_TRUE(wait_for_step(a, "run", 3)) << said("a") << said("b");
  std::ifstream sockets("/proc/net/tcp");
  const std::string open{std::istreambuf_iterator<char>(sockets), {}};
  for (const char* own : {": 0200007F:", ": 0300007F:"}) EXPECT_TRUE(has(open, own)) << open;
  const std::optional<Exit> first = a.wait(Seconds(90.0)), second = b.wait(Seconds(90.0));
  ASSERT_TRUE(first && second) << said("a") << said("b");
  EXPECT_EQ(first->code, 0) << said("a") << said("b");
  EXPECT_EQ(second->code, 0) << said("a") << said("b");
}

// Machines of two kinds would not compute the same bits.
TEST_F(ManyNodes, exact_needs_one_instruction_set_on_all) {
#ifdef SYSTOLE_HAS_CPU
  if (!__builtin_cpu_supports("avx512f")) GTEST_SKIP() << "this machine has AVX2 alone";
#else
  GTEST_SKIP() << "the reference backend is the same everywhere";
#endif
  Process a = start("a", node("a", {"--set", "train.exact=true"}));
  Process b = start("b", node("b", {"--set", "train.exact=true", "--pin-isa", "avx2"}));
  const std::optional<Exit> first = a.wait(Seconds(90.0)), second = b.wait(Seconds(90.0));
  ASSERT_TRUE(first && second) << said("a") << said("b");
  EXPECT_NE(first->code, 0) << said("a");
  EXPECT_NE(second->code, 0) << said("b");
  const std::string told = said("a") + said("b");
  EXPECT_TRUE(has(told, "exact needs all to be the same")) << told;
  EXPECT_TRUE(has(told, "hint: --pin-isa with instructions that all machines have")) << told;
}

TEST_F(ManyNodes, a_rank_killed_on_the_other_node_is_named_and_both_go_on) {
  Process a = start("a", node("a", {"--inject", "compute=25ms"}));
  ASSERT_TRUE(wait_until(a, [&] { return has(said("a"), "run on 4 ranks"); })) << said("a");
  Process b = start("b", node("b", {"--inject", "compute=25ms"}));
  ASSERT_TRUE(wait_for_step(a, "run", 6)) << said("a") << said("b");
  const pid_t pid = pid_of_rank(b.pid(), 3);
  ASSERT_GT(pid, 0);
  ASSERT_EQ(::kill(pid, SIGKILL), 0);
  const std::optional<Exit> first = a.wait(Seconds(90.0)), second = b.wait(Seconds(90.0));
  ASSERT_TRUE(first && second) << said("a") << said("b");
  EXPECT_EQ(first->code, 0) << said("a") << said("b");
  EXPECT_EQ(second->code, 0) << said("b");
  EXPECT_TRUE(has(said("a"), "rank 3 (node b, slot 1) was killed by SIGKILL: generation 1 ends")) << said("a");
  EXPECT_EQ(canonical_steps(events("run")).size(), 40u);
}

}  // namespace
}  // namespace systole::laws
