// `systole run --plan`: runs exactly what was planned, or refuses with what changed.

#include "operate/run/held_plan.h"

#include <gtest/gtest.h>

#include "operate/cli/testing/run_systole.h"
#include "operate/cli/testing/small_workload.h"
#include "predict/plan/chosen_plan.h"

namespace systole::cli {
namespace {

Plan plan_for(const char* target, const char* kind) {
  Plan plan;
  plan.target.name = target;
  plan.target.facts = {{"kind", kind}, {"threads", "2"}};
  plan.program.hash = "a";
  plan.program.model_flops = Flops(12);
  plan.program.devices = 4;
  plan.memory.arena = kGiB;
  plan.made_by = "1";
  return plan;
}

TEST(HeldPlan, another_program_is_refused_with_what_changed) {
  const Plan planned = plan_for("cpu(2 threads)", "cpu");
  EXPECT_FALSE(hold_to_plan(planned, planned).value().has_value());
  Plan now = planned;
  now.program.hash = "b";
  now.target.facts["threads"] = "1";
  now.made_by = "2";
  const Result<std::optional<std::string>> held = hold_to_plan(planned, now);
  ASSERT_FALSE(held.ok());
  EXPECT_NE(held.error().message.find("systole was 1, is 2; threads was 2, is 1"), std::string::npos)
      << held.error().message;
}

TEST(HeldPlan, other_data_have_rows_of_other_lengths) {
  Plan planned = plan_for("cpu(2 threads)", "cpu");
  planned.shapes = {{.length = 16}, {.length = 64}};
  Plan now = planned;
  now.program.hash = "b";
  now.shapes[0].length = 24;
  const Result<std::optional<std::string>> held = hold_to_plan(planned, now);
  ASSERT_FALSE(held.ok());
  EXPECT_NE(held.error().message.find("the lengths of rows were [16, 64], are [24, 64]"), std::string::npos)
      << held.error().message;
}

TEST(HeldPlan, a_plan_for_other_hardware_is_held_to_the_models_flops) {
  const Plan planned = plan_for("4 h100", kPlannedElsewhere);
  Plan now = plan_for("cpu", "cpu");
  now.program.hash = "b";
  EXPECT_TRUE(hold_to_plan(planned, now).value()->starts_with("planned for 4 h100; here it runs on cpu"));
  now.program.model_flops = Flops(13);
  EXPECT_FALSE(hold_to_plan(planned, now).ok());
}

TEST(HeldPlan, what_this_machine_has_no_memory_for_is_refused_before_anything) {
  const Plan planned = plan_for("4 h100", kPlannedElsewhere);
  EXPECT_TRUE(room_for(planned, 4 * kGiB, "cpu").ok());
  const Status refused = room_for(planned, 4 * kGiB - Bytes(1), "cpu");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::does_not_fit);
  EXPECT_NE(refused.error().message.find("4 devices of 4 h100"), std::string::npos) << refused.error().message;
}

class RunOfAPlan : public testing::Test {
 protected:
  RunOfAPlan() { systole_.write("job.yaml", kWorkload); }
  SystoleRunner systole_;
};

TEST_F(RunOfAPlan, runs_what_was_planned) {
  const Captured seen = systole_.shell(
      "$SYSTOLE plan job.yaml --set train.steps=3 --out plan.json >/dev/null && $SYSTOLE run --plan plan.json --folder "
      "r");
  EXPECT_EQ(seen.exit.code, 0) << seen.err;
  EXPECT_NE(seen.out.find("finished at step 3"), std::string::npos) << seen.out;
  const Captured again = systole_.shell("$SYSTOLE run --plan r/plan.json --dry-run");
  EXPECT_EQ(again.exit.code, 0) << "a run's own plan: " << again.err;
}

TEST_F(RunOfAPlan, of_ranks_too) {
  const Captured seen = systole_.shell(
      "$SYSTOLE plan job.yaml --set 'mesh={data: 2}' --out plan.json >/dev/null && $SYSTOLE run --plan plan.json "
      "--dry-run");
  EXPECT_EQ(seen.exit.code, 0) << seen.err;
}

TEST_F(RunOfAPlan, an_edited_plan_is_refused) {
  const Captured seen = systole_.shell(
      "$SYSTOLE plan job.yaml --out plan.json >/dev/null && sed -i 's/\"batch\": 8/\"batch\": 16/' plan.json && "
      "$SYSTOLE run --plan plan.json");
  EXPECT_EQ(seen.exit.code, 2) << seen.err;
  EXPECT_NE(seen.err.find("is not the one that was planned"), std::string::npos) << seen.err;
  EXPECT_FALSE(std::filesystem::exists(systole_.folder() / "runs"));
}

TEST_F(RunOfAPlan, says_what_to_give_it) {
  for (const char* words : {"run", "run job.yaml --plan p.json", "run --plan none.json", "run --plan job.yaml",
                            "run --plan p.json --set train.steps=1", "run --plan p.json --locked"}) {
    const Captured seen = systole_.shell(std::string("$SYSTOLE ") + words);
    EXPECT_NE(seen.exit.code, 0) << words;
    EXPECT_NE(seen.err.find("error: "), std::string::npos) << words << seen.err;
  }
}

}  // namespace
}  // namespace systole::cli
