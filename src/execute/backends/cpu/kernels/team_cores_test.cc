#include "execute/backends/cpu/kernels/team_cores.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <thread>

#include "execute/backends/cpu/kernels/team.h"

namespace systole::cpu {
namespace {

constexpr const char* kOfOpenMp[] = {"OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY"};

// The cores that the calling thread may use.
std::set<int> allowed() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  std::set<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.insert(core);
  }
  return cores;
}

// The cores that each thread of a team of `threads` may use.
std::vector<std::set<int>> allowed_in_team(int threads) {
  std::vector<std::set<int>> cores(static_cast<std::size_t>(threads));
  run_parts(
      threads, threads, Schedule::contiguous,
      [](void* to, std::int64_t, int thread) {
        (*static_cast<std::vector<std::set<int>>*>(to))[static_cast<std::size_t>(thread)] = allowed();
      },
      &cores);
  return cores;
}

class TeamOnCores : public ::testing::Test {
 protected:
  void SetUp() override {
    if (all_.size() < 2) GTEST_SKIP() << "needs two cores";
    for (const char* name : kOfOpenMp) unsetenv(name);
  }
  const std::set<int> all_ = allowed();
  const int n_ = static_cast<int>(all_.size());
};

TEST_F(TeamOnCores, each_has_its_own_while_it_is_held) {
  const TeamCores cores(n_);
  ASSERT_TRUE(cores.hold());
  {
    const HeldToCores held(cores, true);
    std::set<int> taken;
    for (const std::set<int>& own : allowed_in_team(n_)) {
      EXPECT_EQ(own.size(), 1u);
      taken.insert(own.begin(), own.end());
    }
    EXPECT_EQ(taken, all_);
    EXPECT_EQ(allowed(), std::set{*all_.begin()});
  }
  EXPECT_EQ(allowed(), all_);
}

// Threads that the caller creates (prefetching, checkpoints) must not inherit its single core.
TEST_F(TeamOnCores, who_is_made_by_the_caller_is_free) {
  const TeamCores cores(n_);
  for (int i = 0; i < 3; ++i) {
    const HeldToCores held(cores, true);
    allowed_in_team(n_);
  }
  std::set<int> of_another;
  std::thread([&] { of_another = allowed(); }).join();
  EXPECT_EQ(of_another, all_);
}

TEST_F(TeamOnCores, a_short_call_leaves_the_caller) {
  const TeamCores cores(n_);
  const HeldToCores held(cores, false);
  const auto where = allowed_in_team(n_);
  EXPECT_EQ(where[0], all_);
  EXPECT_EQ(where[1].size(), 1u);
}

TEST_F(TeamOnCores, whom_nobody_holds_is_free_again) {
  const TeamCores cores(n_);
  {
    const HeldToCores held(cores, true);
    allowed_in_team(n_);
  }
  for (const std::set<int>& own : allowed_in_team(n_)) EXPECT_EQ(own, all_);
}

TEST_F(TeamOnCores, not_when_there_are_more_or_fewer_cores) {
  EXPECT_FALSE(TeamCores(n_ - 1).hold());
  EXPECT_FALSE(TeamCores(n_ + 1).hold());
  // A caller that may not use all cores is not pinned.
  const TeamCores cores(n_);
  std::thread([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(*all_.rbegin(), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    const HeldToCores held(cores, true);
    EXPECT_EQ(allowed(), std::set{*all_.rbegin()});
  }).join();
}

TEST_F(TeamOnCores, not_when_openmp_is_asked_to) {
  for (const char* name : kOfOpenMp) {
    ASSERT_EQ(setenv(name, "false", 1), 0);
    EXPECT_FALSE(TeamCores(n_).hold()) << name;
    ASSERT_EQ(unsetenv(name), 0);
  }
}

}  // namespace
}  // namespace systole::cpu
