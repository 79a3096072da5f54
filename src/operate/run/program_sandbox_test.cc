#include "operate/run/program_sandbox.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "ground/base/files.h"
#include "ground/base/testing/waits.h"

namespace systole {
namespace {

ProgramTrial ran(const std::string& text, double timeout = 10, bool unsafe = true) {
  ProgramSpec spec{.file = "program.sh", .command = {"/bin/sh", "program.sh"}, .timeout = Seconds(timeout)};
  return ProgramSandbox::open(unsafe).value().run(spec, text).value();
}

TEST(ProgramSandbox, passes_by_the_exit_code_and_tells_why_not) {
  EXPECT_TRUE(ran("exit 0").passed);
  const ProgramTrial failed = ran("echo 'no such luck' >&2; exit 3");
  EXPECT_FALSE(failed.passed);
  EXPECT_NE(failed.why.find("exit code 3"), std::string::npos) << failed.why;
  EXPECT_NE(failed.why.find("no such luck"), std::string::npos) << failed.why;
  const ProgramSpec nothing{.command = {"no-such-program-of-ours"}};
  EXPECT_EQ(ProgramSandbox::open(true).value().run(nothing, "").error().kind, ErrorKind::not_found);
}

TEST(ProgramSandbox, has_a_folder_of_its_own_and_bounds) {
  EXPECT_TRUE(ran("test \"$(ls)\" = program.sh && test \"$HOME\" = \"$(pwd)\" && test -z \"$USER\"").passed);
  EXPECT_TRUE(ran("echo x > file").passed);
  EXPECT_FALSE(ran("dd if=/dev/zero of=file bs=1M count=65 2>&1").passed) << "files of 64 MiB";
  EXPECT_TRUE(
      ran("test \"$(ulimit -v)\" = 1048576 && test \"$(ulimit -c)\" = 0 && test \"$(ulimit -n)\" = 256").passed);
  const ProgramTrial late = ran("sleep 60 & wait", 0.3);
  EXPECT_FALSE(late.passed);
  EXPECT_EQ(late.why, "no end in 0.3 s");
}

TEST(ProgramSandboxIsolation, there_is_no_network) {
  if (!ProgramSandbox::open(false).ok()) GTEST_SKIP() << "this machine gives no namespaces";
  EXPECT_TRUE(ran("test -z \"$(tail -n +2 /proc/self/net/route)\"", 10, false).passed) << "there is no way anywhere";
  EXPECT_TRUE(ran("echo $$ | grep -qx '[0-9]\\{1,2\\}'", 10, false).passed) << "processes are numbered anew";
}

TEST(ProgramSandboxIsolation, a_program_is_ended_by_its_own_signals) {
  if (!ProgramSandbox::open(false).ok()) GTEST_SKIP() << "this machine gives no namespaces";
  EXPECT_FALSE(ran("kill -TERM $$; exit 0", 10, false).passed);
}

TEST(ProgramSandboxIsolation, no_process_is_left_after_the_timeout) {
  if (!ProgramSandbox::open(false).ok()) GTEST_SKIP() << "this machine gives no namespaces";
  const std::string left = testing::TempDir() + "/left-by-a-program";
  std::filesystem::remove(left);
  const std::string text = "exec setsid setpriv --pdeathsig clear sh -c 'sleep 1; echo here > " + left + "'";
  EXPECT_EQ(ran(text, 0.3, false).why, "no end in 0.3 s");
  EXPECT_FALSE(waits([&] { return path_exists(left); }, 1.5));
}

}  // namespace
}  // namespace systole
