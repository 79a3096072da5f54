// no-lying-utilisation: a figure above 100% means a wrong input: `why` withholds it and names both inputs.

#include <gtest/gtest.h>

#include "operate/observe/why.h"

namespace systole::laws {
namespace {

// A step of 1 GFLOP planned for 10 ms, half of a measured matmul rate of 0.2 TFLOP/s.
Plan planned() {
  Plan plan;
  plan.target.calibrated = true;
  plan.target.catalog_entry = "this-machine";
  plan.program.model_flops = Flops(1'000'000'000);
  plan.time.step[Category::compute] = Seconds(0.010);
  plan.model_utilisation = 0.5;
  return plan;
}

WhyReport after(Seconds step, const Plan& plan = planned()) {
  std::vector<Event> events = {Event{Seconds(), Opened{}}};
  Stopped stopped;
  for (int s = 1; s <= 10; ++s) {
    StepEnded ended;
    ended.step = s;
    ended.seconds[Category::compute] = step;
    stopped.seconds += ended.seconds;
    events.push_back(Event{step * static_cast<double>(s), ended});
  }
  stopped.reason = "finished";
  events.push_back(Event{step * 10.0, stopped});
  return why(plan, {events});
}

TEST(NoLyingUtilisation, a_ratio_is_that_of_the_time_taken) {
  const WhyReport report = after(Seconds(0.020));
  ASSERT_TRUE(report.matmul_ratio);
  EXPECT_NEAR(*report.matmul_ratio, 0.25, 1e-9);
  EXPECT_NE(to_text(report).find("25% of this machine's measured matmul rate"), std::string::npos) << to_text(report);
}

TEST(NoLyingUtilisation, above_all_of_the_rate_is_withheld_with_both_inputs_named) {
  const WhyReport report = after(Seconds(0.004));
  EXPECT_FALSE(report.matmul_ratio);
  EXPECT_NE(
      to_text(report).find("utilisation withheld: 10,000,000,000 model FLOPs in 40.0 ms is 250 GFLOP/s, above the "
                           "measured matmul rate of this-machine of 200 GFLOP/s; one of the two is wrong"),
      std::string::npos)
      << to_text(report);
}

TEST(NoLyingUtilisation, nearly_all_of_the_rate_is_told_and_hardly_more_is_withheld) {
  const WhyReport below = after(Seconds(0.00501)), above = after(Seconds(0.00499));
  ASSERT_TRUE(below.matmul_ratio);
  EXPECT_NEAR(*below.matmul_ratio, 0.998, 1e-3);
  EXPECT_EQ(below.withheld, "");
  EXPECT_FALSE(above.matmul_ratio);
  EXPECT_NE(above.withheld, "");
}

TEST(NoLyingUtilisation, no_ratio_to_a_rate_that_nobody_measured) {
  Plan plan = planned();
  plan.target.calibrated = false;
  EXPECT_FALSE(after(Seconds(0.020), plan).matmul_ratio);
}

}  // namespace
}  // namespace systole::laws
