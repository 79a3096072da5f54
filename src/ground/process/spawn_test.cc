#include "ground/process/spawn.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "ground/process/capture.h"

namespace systole {
namespace {

Command shell(std::string script) { return Command{.argv = {"sh", "-c", std::move(script)}}; }

std::string read_file(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class InFolder : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "systole-spawn-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = std::filesystem::canonical(name).string();
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string folder_;
};

TEST(Spawn, says_what_is_missing) {
  const Result<Process> absent = Process::start(Command{.argv = {"no-such-program-anywhere"}});
  ASSERT_FALSE(absent.ok());
  EXPECT_EQ(absent.error().kind, ErrorKind::not_found);
  EXPECT_FALSE(absent.error().hint.empty());
  EXPECT_EQ(Process::start(Command{.argv = {"/no/such/program"}}).error().kind, ErrorKind::not_found);
  Command nowhere = shell("true");
  nowhere.cwd = "/no/such/folder";
  const Result<Process> lost = Process::start(nowhere);
  ASSERT_FALSE(lost.ok());
  EXPECT_NE(lost.error().message.find("/no/such/folder"), std::string::npos);
  EXPECT_EQ(Process::start(Command{.argv = {"/etc/passwd"}}).error().kind, ErrorKind::io);
}

TEST_F(InFolder, sets_folder_environment_and_files) {
  ::setenv("SYSTOLE_SPAWN_TEST", "ours", 1);
  Command command = shell("pwd; echo $SYSTOLE_SPAWN_TEST-$ADDED; cat; echo more >&2");
  command.cwd = folder_;
  command.env = {{"ADDED", "yes"}, {"SYSTOLE_SPAWN_TEST", std::nullopt}};
  std::ofstream(folder_ + "/in") << "input";
  std::ofstream(folder_ + "/err") << "before\n";
  command.in = ChildStream::file(folder_ + "/in");
  command.out = ChildStream::file(folder_ + "/out");
  command.err = ChildStream::append(folder_ + "/err");
  EXPECT_TRUE(Process::start(command)->wait().ok());
  EXPECT_EQ(read_file(folder_ + "/out"), folder_ + "\n-yes\ninput");
  EXPECT_EQ(read_file(folder_ + "/err"), "before\nmore\n");
  Command clean{.argv = {"/usr/bin/env"}, .env = {{"ONLY", "1"}}, .clean_env = true};
  EXPECT_EQ(run_captured(clean)->out, "ONLY=1\n");
}

TEST_F(InFolder, streams_may_share_a_descriptor) {
  const int both = ::open((folder_ + "/both").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_GE(both, 0);
  Command command = shell("echo a; echo b >&2; echo c");
  command.out = command.err = ChildStream::to(both);
  EXPECT_TRUE(Process::start(command)->wait().ok());
  ::close(both);
  EXPECT_EQ(read_file(folder_ + "/both"), "a\nb\nc\n");
}

TEST(Spawn, a_child_holds_none_of_our_files) {
  const Captured said = run_captured(Command{.argv = {"ls", "/proc/self/fd"}}).value();
  EXPECT_EQ(said.out, "0\n1\n2\n3\n");  // 3 is the descriptor of the listing itself
}

TEST(Spawn, limits_hold) {
  Command command = shell("ulimit -n");
  command.limits = {{RLIMIT_NOFILE, 37}};
  EXPECT_EQ(run_captured(command)->out, "37\n");
}

TEST(Spawn, waits_with_a_timeout_and_stops_the_group) {
  Process process = Process::start(shell("sleep 60 & wait")).value();
  EXPECT_FALSE(process.poll().has_value());
  EXPECT_FALSE(process.has_ended());
  EXPECT_FALSE(process.wait(Seconds(0.02)).has_value());
  const Exit exit = process.stop(Seconds(5.0));
  EXPECT_EQ(exit.signal, SIGTERM);
  EXPECT_EQ(process.poll()->signal, SIGTERM);
  EXPECT_TRUE(process.signal(SIGKILL).ok());
}

TEST(Spawn, stop_kills_what_does_not_listen) {
  Command command = shell("trap '' TERM; echo ready; while :; do sleep 0.01; done");
  command.out = ChildStream::pipe();
  Process process = Process::start(command).value();
  char ready[6];
  ASSERT_EQ(::read(process.out(), ready, 6), 6);
  EXPECT_EQ(process.stop(Seconds(0.1)).signal, SIGKILL);
}

TEST(Spawn, a_destroyed_process_is_gone) {
  pid_t pid = 0;
  {
    const Process process = Process::start(shell("sleep 60")).value();
    pid = process.pid();
    EXPECT_EQ(::kill(pid, 0), 0);
  }
  EXPECT_NE(::kill(pid, 0), 0);
}

TEST(Spawn, children_begin_with_default_signals) {
  struct sigaction ignore {
  }, before{};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGTERM, &ignore, &before);
  Process process = Process::start(shell("sleep 60")).value();
  EXPECT_EQ(process.stop(Seconds(5.0)).signal, SIGTERM);
  ::sigaction(SIGTERM, &before, nullptr);
}

TEST(FindProgram, looks_in_path) {
  EXPECT_NE(find_program("sh")->find("/sh"), std::string::npos);
  EXPECT_EQ(*find_program("./x"), "./x");
  EXPECT_FALSE(find_program("").ok());
}

}  // namespace
}  // namespace systole
