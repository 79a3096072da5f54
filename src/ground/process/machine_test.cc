#include "ground/process/machine.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "ground/process/capture.h"

namespace systole {
namespace {

const auto kBegan = std::chrono::steady_clock::now();  // a little after the process

class FakeMachine : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "systole-machine-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    root_ = name;
    files_ = {root_ + "/proc", root_ + "/cgroup"};
    write("proc/meminfo", "MemTotal:       16000000 kB\nMemFree: 1 kB\nMemAvailable:    8000000 kB\n");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ + "/" + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  std::string root_;
  MachineFiles files_;
};

TEST_F(FakeMachine, without_groups_has_all) {
  EXPECT_EQ(cgroup_cores(files_), std::nullopt);
  EXPECT_EQ(cgroup_memory(files_), std::nullopt);
  EXPECT_EQ(memory_limit(files_), Bytes(16'000'000LL * 1024));
  EXPECT_EQ(available_memory(files_), Bytes(8'000'000LL * 1024));
  EXPECT_GE(allowed_cores(files_), 1);
}

TEST_F(FakeMachine, version_2_takes_the_lowest_limit_above) {
  write("proc/self/cgroup", "0::/jobs/mine\n");
  write("cgroup/jobs/mine/cpu.max", "max 100000\n");
  write("cgroup/jobs/cpu.max", "150000 100000\n");
  write("cgroup/jobs/mine/memory.max", "4294967296\n");
  write("cgroup/jobs/memory.max", "1073741824\n");
  EXPECT_EQ(cgroup_cores(files_), 1.5);
  EXPECT_EQ(cgroup_memory(files_), kGiB);
  EXPECT_EQ(memory_limit(files_), kGiB);
  EXPECT_LE(allowed_cores(files_), 2);
}

TEST_F(FakeMachine, version_2_in_a_container) {
  write("proc/self/cgroup", "0::/\n");
  write("cgroup/cpu.max", "50000 100000\n");
  write("cgroup/memory.max", "max\n");
  EXPECT_EQ(cgroup_cores(files_), 0.5);
  EXPECT_EQ(allowed_cores(files_), 1);
  EXPECT_EQ(cgroup_memory(files_), std::nullopt);
}

TEST_F(FakeMachine, version_1_with_its_unmounted_path) {
  write("proc/self/cgroup", "5:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n0::/x\n");
  write("cgroup/memory/memory.limit_in_bytes", "2147483648\n");
  write("cgroup/cpu/cpu.cfs_quota_us", "300000\n");
  write("cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cgroup_cores(files_), 3.0);
  EXPECT_EQ(cgroup_memory(files_), kGiB * 2);
  write("cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  write("cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(cgroup_cores(files_), std::nullopt);
  EXPECT_EQ(cgroup_memory(files_), std::nullopt);
}

// The parent of a program may be larger than the program.
TEST(Machine, its_peak_is_not_that_of_who_started_it) {
  if (std::getenv("SYSTOLE_TELL_PEAK") != nullptr) {
    fmt::print("peak {}\n", peak_resident_memory().count());
    return;
  }
  const std::vector<char> large(512 << 20, 1);
  Command command;
  command.argv = {"/bin/sh", "-c",
                  "SYSTOLE_TELL_PEAK=1 exec " + std::filesystem::read_symlink("/proc/self/exe").string() +
                      " --gtest_filter=Machine.its_peak_is_not_that_of_who_started_it"};
  const std::string told = run_captured(command).value().out;
  const std::size_t at = told.find("peak ");
  ASSERT_NE(at, told.npos) << told;
  EXPECT_LT(std::stoll(told.substr(at + 5)), 400 << 20);
  EXPECT_GT(std::stoll(told.substr(at + 5)), 1 << 20);
  EXPECT_EQ(large[large.size() / 2], 1);
}

TEST(Machine, sees_its_own_memory_grow) {
  EXPECT_GE(page_size().count(), 4096);
  const Bytes before = resident_memory();
  std::vector<char> grown(64 << 20, 1);
  EXPECT_GE((resident_memory() - before).count(), 60 << 20);
  EXPECT_GE(peak_resident_memory().count(), (before + kMiB * 60).count());
  EXPECT_EQ(grown[grown.size() / 2], 1);
  EXPECT_GT(memory_limit().count(), 0);
  EXPECT_GT(allowed_cores(), 0);
  EXPECT_FALSE(host_name().empty());
  EXPECT_FALSE(is_stopped_process(getpid()));
  EXPECT_FALSE(is_stopped_process(-1));
}

TEST(Machine, knows_how_long_its_process_is_there) {
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  const std::chrono::duration<double> since = std::chrono::steady_clock::now() - kBegan;
  const double age = process_age().count();
  EXPECT_GE(age, since.count() - 0.006);
  EXPECT_LE(age, since.count() + 30) << "loading a program takes less";
}

TEST(Machine, sees_a_process_that_is_stopped) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::raise(SIGSTOP);
    ::_exit(0);
  }
  ASSERT_GT(child, 0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, WUNTRACED), child);
  ASSERT_TRUE(WIFSTOPPED(status));
  EXPECT_TRUE(is_stopped_process(child));
  ::kill(child, SIGCONT);
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_FALSE(is_stopped_process(child));
}

}  // namespace
}  // namespace systole
