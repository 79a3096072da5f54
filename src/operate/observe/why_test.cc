#include "operate/observe/why.h"

#include <gtest/gtest.h>

#include "operate/observe/testing/tiny_run.h"

namespace systole {
namespace {

std::vector<Event> ended_process() {
  Stopped stopped;
  stopped.reason = "finished";
  stopped.step = 2;
  stopped.seconds[Category::compute] = Seconds(2.5);
  stopped.seconds[Category::data_wait] = Seconds(1.0);
  stopped.seconds[Category::other] = Seconds(0.5);
  return {opened_event("tiny-1", "2026"),
          step_event(1, 3),
          {Seconds(2), Note{"warning", "the reader waited", "data", Seconds(0.75)}},
          step_event(2, 2),
          {Seconds(3.5), Note{"warning", "the reader waited", "data", Seconds(0.25)}},
          {Seconds(3.5), Note{"warning", "a retry", "store", Seconds(0)}},
          {Seconds(3.6), MemoryMeasured{{}, Bytes(90), Bytes(40)}},
          {Seconds(3.7), WorkCounted{2, Flops(2000), Bytes(1), Bytes(0), {{"contraction", Seconds(1.5)}}}},
          {Seconds(4), stopped}};
}

const WhyRow* row_of(const WhyReport& report, Category category) {
  for (const WhyRow& row : report.rows)
    if (row.category == category) return &row;
  return nullptr;
}

TEST(Why, every_second_is_in_one_row) {
  const WhyReport report = why(tiny_plan("tiny"), {ended_process()});
  Seconds sum{};
  for (const WhyRow& row : report.rows) sum += row.measured;
  EXPECT_EQ(sum, report.wall);
  EXPECT_EQ(report.wall, Seconds(4.0));
  EXPECT_EQ(row_of(report, Category::compute)->predicted, Seconds(4.0));
  EXPECT_EQ(row_of(report, Category::compute)->measured, Seconds(2.5));
  EXPECT_EQ(row_of(report, Category::other)->measured, Seconds(0.5));
  EXPECT_EQ(row_of(report, Category::restore), nullptr);  // nothing planned, nothing spent
}

TEST(Why, notes_that_took_time_are_the_cause_of_their_category) {
  const WhyReport report = why(tiny_plan("tiny"), {ended_process()});
  EXPECT_EQ(row_of(report, Category::data_wait)->cause, "the reader waited, 2 times, 1.00 s");
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_EQ(report.notes[0].text, "a retry");
}

TEST(Why, flops_and_memory_beside_the_plan) {
  const WhyReport report = why(tiny_plan("tiny"), {ended_process()});
  EXPECT_EQ(report.counted_flops, report.planned_flops);
  const std::string text = to_text(report);
  EXPECT_NE(text.find("2,000 counted = planned (2 steps)"), text.npos) << text;
  EXPECT_NE(text.find("40 B = planned"), text.npos) << text;
  EXPECT_NE(text.find("90 B resident, planned 100 (-10.00%)"), text.npos) << text;
  EXPECT_NE(text.find("12.5% of wall time"), text.npos) << text;
}

TEST(Why, a_difference_is_shown) {
  Plan plan = tiny_plan("tiny");
  plan.program.executed_flops = Flops(999);
  const std::string text = to_text(why(plan, {ended_process()}));
  EXPECT_NE(text.find("2,000 counted, planned 1,998 (+0.10%)"), text.npos) << text;
}

TEST(Why, steps_of_a_length_that_the_plan_does_not_have_are_told) {
  Plan plan = tiny_plan("tiny");
  plan.shapes = {{.length = 16, .executed_flops = Flops(700)}, {.length = 64, .executed_flops = Flops(1000)}};
  WorkCounted work{5, Flops(4700), Bytes(1), Bytes(0), {}};
  work.steps_by_length = {{"16", 1}, {"24", 0}, {"64", 4}};
  const WhyReport known = why(plan, {{opened_event("tiny-1", "1"), {Seconds(1), work}}});
  EXPECT_EQ(known.planned_flops, Flops(4700));
  EXPECT_TRUE(known.notes.empty());
  work.steps_by_length = {{"16", 1}, {"24", 3}, {"64", 1}};
  const WhyReport report = why(plan, {{opened_event("tiny-1", "1"), {Seconds(1), work}}});
  EXPECT_EQ(report.planned_flops, Flops(1700));
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_NE(to_text(report).find("warning: plan: 3 steps of rows of 24 are counted, and the plan has none"),
            std::string::npos)
      << to_text(report);
}

TEST(Why, no_utilisation_without_a_measured_rate) {
  Plan plan = tiny_plan("tiny");
  plan.model_utilisation = 0.5;
  EXPECT_FALSE(why(plan, {ended_process()}).matmul_ratio.has_value());
  EXPECT_NE(to_text(why(plan, {ended_process()})).find("predictions are UNCALIBRATED"), std::string::npos);
  plan.target.calibrated = true;
  // 2 steps took 2.5 s; the plan has 2.0 s at half the matmul rate.
  EXPECT_DOUBLE_EQ(why(plan, {ended_process()}).matmul_ratio.value(), 0.4);
  EXPECT_EQ(to_text(why(plan, {ended_process()})).find("UNCALIBRATED"), std::string::npos);
}

TEST(Why, a_killed_process_counts_its_steps_and_is_told) {
  const WhyReport report = why(tiny_plan("tiny"), {{opened_event("tiny-1", "1"), step_event(1, 3)}, ended_process()});
  EXPECT_EQ(report.killed, 1);
  EXPECT_EQ(row_of(report, Category::compute)->measured, Seconds(1.25 + 2.5));
  EXPECT_NE(to_text(report).find("1 of them left no end"), std::string::npos);
  EXPECT_EQ(why(tiny_plan("tiny"), {{opened_event("tiny-1", "1")}}).state, RunState::running);
}

// The step ended at 3 s; the ring continues to 3.75 s and has what the process did then.
TEST(Why, a_killed_process_is_accounted_for_to_its_last_stretch) {
  const auto span = [](Category ended, Category began, double from, double to) {
    return Span{static_cast<std::uint32_t>(ended), static_cast<std::uint32_t>(began), 2, Seconds(from), Seconds(to)};
  };
  Event step = step_event(1, 3);
  step.t = Seconds(3.0);
  const std::vector<Span> spans{span(Category::compute, Category::data_wait, 1.0, 2.5),
                                span(Category::data_wait, Category::compute, 2.75, 3.5),
                                span(Category::compute, Category::update, 3.5, 3.75)};
  const WhyReport without = why(tiny_plan("tiny"), {{opened_event("tiny-1", "1"), step}});
  const WhyReport report = why(tiny_plan("tiny"), {{opened_event("tiny-1", "1"), step}}, {spans});
  EXPECT_EQ(report.wall - without.wall, Seconds(0.75));
  EXPECT_EQ(report.last_seen, "in update of step 2, 3.75 s after it opened the run");
  EXPECT_NE(to_text(report).find("last seen in update of step 2"), std::string::npos);
  EXPECT_EQ(without.last_seen, "");
}

}  // namespace
}  // namespace systole
