// Nodes that do not find their leader, or that it refuses: reported at once, and stoppable.
#include <gtest/gtest.h>

#include "ground/net/socket.h"
#include "operate/cli/testing/run_systole.h"

namespace systole::cli {
namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class Followers : public testing::Test {
 protected:
  Followers() {
    systole_.write("job.yaml", "systole: 1\nname: mine\ncommand: [sh, -c, exit 0]\n");
    systole_.write_secret("token", std::string(32, 'a') + "\n");
    systole_.write_secret("other", std::string(32, 'b') + "\n");
  }
  // A node of a run that waits for more nodes than there will be.
  std::string node(const std::string& name, const std::string& more = "") const {
    return "\"$SYSTOLE\" run job.yaml --ranks 3 --local-ranks 1 --rendezvous 127.0.0.1:" + std::to_string(port_) +
           " --token-file token --node " + name + " " + more + " ";
  }
  static std::string until(const std::string& file, const std::string& text) {
    return "n=0; while [ $n -lt 200 ] && ! grep -q '" + text + "' " + file + "; do n=$((n+1)); sleep 0.05; done; ";
  }

  SystoleRunner systole_;
  int port_ = free_port().value();
};

TEST_F(Followers, one_without_a_leader_says_so_and_ends_when_it_is_asked) {
  for (const auto& [signal, code] : {std::pair("TERM", 76), {"INT", 130}, {"HUP", 76}}) {
    // A shell without job control makes background processes ignore INT.
    const Captured done = systole_.shell("set -m; rm -f err; " + node("b", "--follow") + " 2>err >out & pid=$!; " +
                                         until("err", "no node leads at") +
                                         fmt::format("kill -{} $pid; wait $pid; ", signal) + "echo code $?; cat err");
    EXPECT_TRUE(has(done.out, fmt::format("code {}\n", code))) << signal << done.out;
    EXPECT_TRUE(has(done.out, fmt::format("no node leads at 127.0.0.1:{} yet: cannot connect to", port_))) << done.out;
  }
}

TEST_F(Followers, each_that_is_not_wanted_hears_why) {
  const Captured done = systole_.shell(
      node("a") +
      " 2>lead >leadout & lead=$!; n=0; while [ $n -lt 200 ] && [ ! -d runs/mine-1/logs ]; do n=$((n+1)); "
      "sleep 0.05; done; " +
      node("a", "--follow") + " 2>same; echo same $?; " +
      "\"$SYSTOLE\" run job.yaml --ranks 3 --local-ranks 1 --follow --rendezvous 127.0.0.1:" + std::to_string(port_) +
      " --token-file other --node c 2>token.err; echo token $?; " + node("b", "--follow") + " 2>b >bout & b=$!; " +
      until("lead", "node b joined") + node("b", "--follow") + " 2>twice; echo twice $?; " +
      "kill -TERM $b $lead; wait; cat same token.err twice");
  EXPECT_TRUE(has(done.out, "same 1\n") && has(done.out, "token 2\n") && has(done.out, "twice 1\n")) << done.out;
  EXPECT_TRUE(has(done.out, "a node named 'a' is in this run already: it leads")) << done.out;
  EXPECT_TRUE(has(done.out, "without answering our token")) << done.out;
  EXPECT_TRUE(has(done.out, "a node named 'b' is in this run already, at 127.0.0.1")) << done.out;
  EXPECT_TRUE(has(done.out, "hint: --node: ")) << done.out;
}

TEST_F(Followers, with_tls_here_and_not_there_each_hears_which) {
  const std::string tls = "--set ranks.tls=true";
  for (const bool leads_with : {true, false}) {
    const Captured done = systole_.shell(
        "rm -rf runs; " + node("a", leads_with ? tls : "") +
        " 2>lead >leadout & lead=$!; n=0; while [ $n -lt 200 ] && [ ! -d runs/mine-1/logs ]; do n=$((n+1)); "
        "sleep 0.05; done; " +
        node("b", "--follow " + (leads_with ? "" : tls)) + " 2>err; echo code $?; kill -TERM $lead; wait; cat err");
    EXPECT_TRUE(has(done.out, "code 2\n")) << done.out;
    EXPECT_TRUE(has(done.out, leads_with ? " runs with ranks.tls, and this node without"
                                         : "this node runs with ranks.tls, and the rendezvous at "))
        << done.out;
    EXPECT_TRUE(
        has(done.out, leads_with ? "hint: --set ranks.tls=true here too" : "hint: --set ranks.tls=true where it leads"))
        << done.out;
  }
  const Captured none = systole_.run({"run", "job.yaml", "--ranks", "3", "--local-ranks", "1", "--set",
                                      "ranks.tls=true", "--rendezvous", "127.0.0.1:" + std::to_string(port_)});
  EXPECT_EQ(none.exit.code, 2);
  EXPECT_TRUE(has(none.err, "needs the token that they share")) << none.err;
  EXPECT_TRUE(has(none.err, "hint: --token-file FILE; make one, and copy it to every node: ")) << none.err;
}

}  // namespace
}  // namespace systole::cli
