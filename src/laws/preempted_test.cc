// A run that is asked to stop: by SIGTERM, or by the metadata server of a preempted machine.

#include <sys/socket.h>

#include <csignal>
#include <thread>

#include "ground/net/socket.h"
#include "laws/ranked_job.h"

namespace systole::laws {
namespace {

class Preempted : public RankedRuns {
 protected:
  static bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }
};

// Answers every request with `flag`.
class Metadata {
 public:
  Metadata() : listening_(listen_on({"127.0.0.1", 0}).value()) {
    thread_ = std::jthread([this](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        const Fd fd(::accept4(listening_.fd.get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (fd.get() < 0) {
          std::this_thread::sleep_for(std::chrono::milliseconds(3));
          continue;
        }
        char request[2048];
        (void)!::recv(fd.get(), request, sizeof request, 0);
        const std::string answer = std::string("HTTP/1.0 200 OK\r\n\r\n") + flag.load();
        (void)!::send(fd.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
      }
    });
  }
  std::string address() const { return fmt::format("http://127.0.0.1:{}/preempted", listening_.port); }
  std::atomic<const char*> flag{"FALSE"};

 private:
  ListeningSocket listening_;
  std::jthread thread_;
};

TEST_F(Preempted, the_metadata_servers_flag_saves_and_resume_goes_on) {
  Metadata server;
  for (const char* ranks : {"2", "1"}) {
    server.flag = "FALSE";
    const std::string run = std::string("p") + ranks;
    Process agent =
        start(run, words(run, {"--ranks", ranks, "--set", "ranks.preemption=" + server.address(), "--set",
                               "checkpoint.every=never", "--set", "train.steps=400", "--inject", "compute=10ms"}));
    ASSERT_TRUE(wait_for_step(agent, run, 3)) << said(run);
    server.flag = "TRUE";
    const std::optional<Exit> exit = agent.wait(Seconds(20.0));
    ASSERT_TRUE(exit) << said(run);
    EXPECT_EQ(exit->code, 75) << said(run);
    EXPECT_TRUE(last_of<Stopped>(events(run)).saved);
    const std::int64_t step = last_step(run);
    const Captured resumed = shop_.systole({"resume", run, "--ranks", ranks, "--set", "ranks.preemption=off", "--set",
                                            fmt::format("train.steps={}", step + 5)});
    EXPECT_EQ(resumed.exit.code, 0) << resumed.err;
    EXPECT_EQ(last_step(run), step + 5);
  }
}

// The others cannot save without it, and wait no longer than the notice.
TEST_F(Preempted, a_rank_that_is_gone_is_not_waited_for) {
  Process agent =
      start("gone", words("gone", {"--ranks", "2", "--set", "ranks.notice=3s", "--inject", "compute=20ms"}));
  ASSERT_TRUE(wait_for_step(agent, "gone", 6)) << said("gone");
  const pid_t pid = pid_of_rank(agent.pid(), 1);
  ASSERT_EQ(::kill(pid, SIGSTOP), 0);
  agent.signal(SIGTERM).value();
  const auto asked = std::chrono::steady_clock::now();
  const std::optional<Exit> exit = agent.wait(Seconds(20.0));
  const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - asked).count();
  ASSERT_TRUE(exit) << said("gone");
  EXPECT_EQ(exit->code, 76) << said("gone");
  EXPECT_LT(took, 5.0);
  EXPECT_TRUE(has(said("gone"), "it goes on from the checkpoint before")) << said("gone");
  const Captured resumed = shop_.systole({"resume", "gone", "--ranks", "2"});
  EXPECT_EQ(resumed.exit.code, 0) << resumed.err;
}

// Earlier saves took four seconds; less than two are left.
TEST_F(Preempted, a_save_that_cannot_finish_is_not_begun) {
  Process agent =
      start("late", words("late", {"--ranks", "2", "--set", "ranks.notice=2s", "--set", "checkpoint.asynchronous=false",
                                   "--inject", "checkpoint=4s,compute=150ms"}));
  ASSERT_TRUE(wait_for_step(agent, "late", 5)) << said("late");
  agent.signal(SIGTERM).value();
  const std::optional<Exit> exit = agent.wait(Seconds(20.0));
  ASSERT_TRUE(exit) << said("late");
  EXPECT_EQ(exit->code, 76) << said("late");
  EXPECT_TRUE(has(said("late"), "is not saved: of the notice ")) << said("late");
  EXPECT_EQ(shop_.systole({"resume", "late", "--ranks", "2", "--set", "train.steps=12"}).exit.code, 0);
}

}  // namespace
}  // namespace systole::laws
