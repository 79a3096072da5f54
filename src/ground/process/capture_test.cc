#include "ground/process/capture.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>

namespace systole {
namespace {

Command shell(std::string script) { return Command{.argv = {"sh", "-c", std::move(script)}}; }

double seconds_of(const auto& act) {
  const auto before = std::chrono::steady_clock::now();
  act();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
}

TEST(Capture, keeps_streams_and_code) {
  const Captured said = run_captured(shell("echo out; echo err >&2; exit 3")).value();
  EXPECT_EQ(said.out, "out\n");
  EXPECT_EQ(said.err, "err\n");
  EXPECT_EQ(said.exit.code, 3);
  EXPECT_FALSE(said.exit.ok());
  EXPECT_EQ(to_string(said.exit), "exit code 3");
  EXPECT_GT(said.exit.peak_resident.count(), 0);
}

TEST(Capture, gives_input_larger_than_a_pipe) {
  const std::string input(1 << 20, 'x');
  CaptureOptions options{.input = input};
  EXPECT_EQ(run_captured(Command{.argv = {"cat"}}, options)->out, input);
  EXPECT_EQ(run_captured(shell("exec 0<&-; sleep 0.05; echo unread"), options)->out, "unread\n");
}

TEST(Capture, forgets_what_is_beyond_the_limit) {
  const Captured said = run_captured(shell("head -c 3000000 /dev/zero; echo done >&2"), {.limit = Bytes(1000)}).value();
  EXPECT_EQ(said.out.size(), 1000u);
  EXPECT_EQ(said.err, "done\n");
  EXPECT_TRUE(said.truncated);
  EXPECT_TRUE(said.exit.ok());
}

TEST(Capture, kills_the_group_at_the_timeout) {
  Captured said;
  const double took = seconds_of(
      [&] { said = run_captured(shell("echo begun; sleep 60 & sleep 60"), {.timeout = Seconds(0.2)}).value(); });
  EXPECT_TRUE(said.timed_out);
  EXPECT_EQ(said.exit.signal, SIGKILL);
  EXPECT_EQ(to_string(said.exit), "killed by SIGKILL");
  EXPECT_EQ(said.out, "begun\n");
  EXPECT_LT(took, 10);
}

TEST(Capture, does_not_wait_for_what_the_child_left_running) {
  Captured said;
  const double took = seconds_of([&] { said = run_captured(shell("sleep 60 & echo $!")).value(); });
  EXPECT_TRUE(said.exit.ok());
  EXPECT_LT(took, 10);
  // Dead, or a zombie until its new parent reaps it.
  const std::string stat = "/proc/" + std::to_string(std::stoi(said.out)) + "/stat";
  bool gone = false;
  for (int i = 0; i < 500 && !gone; ++i) {
    std::string text;
    std::getline(std::ifstream(stat), text);
    gone = text.empty() || text.substr(text.rfind(')') + 2, 1) == "Z";
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_TRUE(gone);
}

// It leaves the group, so that it outlives the child, and writes faster than anybody reads.
TEST(Capture, who_writes_without_end_holds_nobody_up) {
  Captured said;
  const CaptureOptions options{.limit = Bytes(1000), .timeout = Seconds(0.5)};
  EXPECT_LT(seconds_of([&] { said = run_captured(shell("setsid yes & sleep 0.2; exit 3"), options).value(); }), 5);
  EXPECT_EQ(said.exit.code, 3);
  EXPECT_TRUE(said.truncated);
  EXPECT_LT(seconds_of([&] { said = run_captured(shell("yes"), options).value(); }), 5);
  EXPECT_TRUE(said.timed_out);
}

}  // namespace
}  // namespace systole
