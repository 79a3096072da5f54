#include "describe/spec/run_state.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "ground/base/exit_code.h"

namespace systole {
namespace {

std::vector<Event> ended_by(const std::string& reason) {
  Stopped stopped;
  stopped.reason = reason;
  return {{Seconds(0), Opened{}}, {Seconds(1), stopped}};
}

TEST(RunStates, each_has_a_name_of_its_own_that_reads_back) {
  std::set<std::string> names;
  for (const RunStateText& one : run_states()) {
    EXPECT_TRUE(names.insert(one.name).second) << one.name;
    EXPECT_EQ(run_state_named(one.name), one.state);
    EXPECT_STREQ(name_of(one.state), one.name);
  }
  EXPECT_FALSE(run_state_named("open"));
}

TEST(RunStates, a_process_is_as_its_last_word_says) {
  EXPECT_EQ(state_of(ended_by("finished")), RunState::finished);
  EXPECT_EQ(state_of(ended_by("signal")), RunState::stopped);
  EXPECT_EQ(state_of(ended_by("budget")), RunState::budget_used);
  EXPECT_EQ(state_of(ended_by("diverged")), RunState::diverged);
  EXPECT_EQ(state_of(ended_by("error")), RunState::failed);
  EXPECT_EQ(state_of(ended_by("of a newer version")), RunState::failed);
  EXPECT_EQ(state_of(std::vector<Event>{{Seconds(0), Opened{}}}), RunState::running);
}

TEST(RunStates, who_told_of_no_end_is_killed_once_nobody_holds_its_folder) {
  EXPECT_EQ(state_with(RunState::running, true), RunState::running);
  EXPECT_EQ(state_with(RunState::running, false), RunState::killed);
  EXPECT_EQ(state_with(RunState::running, std::nullopt), RunState::unknown);
  EXPECT_EQ(state_with(RunState::stopped, true), RunState::stopped) << "it has told of its end already";
}

TEST(RunStates, an_exit_code_says_the_same_as_the_event) {
  EXPECT_EQ(state_of_exit(kExitDone, true), RunState::finished);
  EXPECT_EQ(state_of_exit(kExitOverBudget, false), RunState::budget_used);
  EXPECT_EQ(state_of_exit(kExitOverBudget, true), RunState::budget_used);
  EXPECT_EQ(state_of_exit(kExitSaved, true), RunState::stopped);
  EXPECT_EQ(state_of_exit(kExitSaved, false), RunState::failed) << "nobody begins it again";
  EXPECT_EQ(state_of_exit(kExitNo, false), RunState::failed);
}

TEST(RunStates, what_is_over_stays_so) {
  for (const RunState over : {RunState::finished, RunState::stopped, RunState::budget_used, RunState::diverged,
                              RunState::failed, RunState::killed})
    EXPECT_TRUE(is_over(over)) << name_of(over);
  for (const RunState other : {RunState::queued, RunState::starting, RunState::running, RunState::saving,
                               RunState::preempted, RunState::damaged, RunState::unknown})
    EXPECT_FALSE(is_over(other)) << name_of(other);
}

}  // namespace
}  // namespace systole
