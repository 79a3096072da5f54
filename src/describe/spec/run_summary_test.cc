#include "describe/spec/run_summary.h"

#include <gtest/gtest.h>

#include "describe/spec/plan.h"

namespace systole {
namespace {

Event opened(const std::string& at, std::int64_t from_step) {
  Opened event;
  event.run = "line";
  event.at = at;
  event.from_step = from_step;
  return {Seconds(0), event};
}
Event step(std::int64_t number) {
  StepEnded event;
  event.step = number;
  return {Seconds(static_cast<double>(number)), event};
}
Event stopped(const std::string& reason, const std::string& detail) {
  Stopped event;
  event.reason = reason;
  event.detail = detail;
  return {Seconds(9), event};
}

TEST(RunSummaries, say_how_the_last_process_ended_and_which_steps_count) {
  const RunSummary summary =
      summarize({{opened("2026-01-01", 0), step(1), step(2), step(3), stopped("error", "no space")},
                 {opened("2026-01-02", 1), step(2), stopped("budget", "")}},
                nullptr);
  EXPECT_EQ(summary.state, RunState::budget_used);
  EXPECT_EQ(summary.problem, "") << "that was of the process before";
  EXPECT_EQ(summary.step, 2) << "the steps above 1 were taken back";
  EXPECT_EQ(summary.since, "2026-01-01");
  EXPECT_EQ(summary.workload, "line");
  EXPECT_FALSE(summary.of);
}

TEST(RunSummaries, take_the_name_and_the_steps_from_the_plan) {
  Plan plan;
  plan.workload.name = "planned";
  plan.time.steps = 40;
  const RunSummary summary = summarize({{opened("2026-01-01", 0), step(1), stopped("error", "no space")}}, &plan);
  EXPECT_EQ(summary.workload, "planned");
  EXPECT_EQ(summary.of, 40);
  EXPECT_EQ(summary.state, RunState::failed);
  EXPECT_EQ(summary.problem, "no space");
}

TEST(RunSummaries, of_a_run_that_nobody_opened_yet) {
  EXPECT_EQ(summarize({}, nullptr).state, RunState::running) << "until it is known that nobody holds its folder";
}

}  // namespace
}  // namespace systole
