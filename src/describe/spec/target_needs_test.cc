#include "describe/spec/target_needs.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

Workload asking_for_all() {
  Workload workload;
  workload.resources.provisioning = Provisioning::spot;
  workload.slurm.array = CountRange{0, 3};
  workload.ranks.retries = 2;
  workload.objective.budget = Dollars(100);
  return workload;
}

// The columns that a workload or its hardware asks for: without each of them the use is refused, for its own reason.
TEST(TargetNeeds, refuse_a_target_that_lacks_one_of_them) {
  constexpr JobTargetAbility kCan{true, ""}, kCannot{false, "the reason"};
  JobTargetRow able{.name = "able", .title = "Able", .about = "", .example = "", .keys = {}, .includes = nullptr};
  for (const JobTargetColumn& column : job_target_columns()) able.*column.ability = kCan;
  const Workload workload = asking_for_all();
  const TargetUse use{.workload = workload, .nodes = 2, .tpus = true, .hardware = "v5e:4x4"};
  EXPECT_TRUE(lacking(able, use).empty());
  const std::pair<JobTargetAbility JobTargetRow::*, const char*> kNeeds[] = {
      {&JobTargetRow::jobs, "v5e:4x4: the reason"},
      {&JobTargetRow::tpus, "v5e:4x4: the reason"},
      {&JobTargetRow::spot, "resources.provisioning: the reason"},
      {&JobTargetRow::arrays, "slurm.array: the reason"},
      {&JobTargetRow::gang, "v5e:4x4: the reason"},
      {&JobTargetRow::restarts, "ranks.retries: the reason"},
      {&JobTargetRow::budget, "objective.budget: the reason"}};
  for (const auto& [ability, said] : kNeeds) {
    JobTargetRow lacks = able;
    lacks.*ability = kCannot;
    const std::vector<Error> errors = lacking(lacks, use);
    ASSERT_EQ(errors.size(), 1u) << said;
    EXPECT_EQ(errors[0].message, said);
    EXPECT_EQ(errors[0].kind, ErrorKind::unsupported);
    EXPECT_NE(errors[0].hint, "") << said;
  }
  JobTargetRow none = able;
  for (const auto& need : kNeeds) none.*need.first = kCannot;
  EXPECT_EQ(lacking(none, use).size(), std::size(kNeeds));
}

TEST(TargetNeeds, are_none_of_a_workload_that_asks_for_nothing) {
  const Workload workload;
  for (const JobTargetRow& row : job_target_table())
    EXPECT_EQ(lacking(row, {.workload = workload}).empty(), row.jobs.can) << row.name;
}

TEST(TargetNeeds, name_the_targets_that_have_the_ability) {
  const Workload workload = asking_for_all();
  const std::vector<Error> errors =
      lacking(*find_job_target_row("ssh"), {.workload = workload, .nodes = 2, .tpus = true});
  ASSERT_EQ(errors.size(), 2u);
  EXPECT_EQ(errors[0].hint, "--on kubernetes or gke; or take resources.provisioning out");
  EXPECT_EQ(errors[1].hint, "--on slurm; or a run a seed: --set train.seed=N --run NAME-N");
  EXPECT_EQ(option_lacks(*find_job_target_row("ssh"), &JobTargetRow::chains, "--after", "wait").hint,
            "--on slurm; or wait");
}

}  // namespace
}  // namespace systole
