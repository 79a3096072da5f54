#include "describe/spec/job_target_table.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <set>
#include <string>

namespace systole {
namespace {

TEST(TargetTable, has_each_name_once) {
  std::set<std::string> names;
  for (const JobTargetRow& row : job_target_table()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_EQ(find_job_target_row(row.name), &row);
  }
  EXPECT_EQ(job_target_names().size(), names.size());
  EXPECT_EQ(find_job_target_row(""), nullptr);
  EXPECT_EQ(find_job_target_row("slrum"), nullptr);
}

// A column missing from the list would be on no page.
TEST(TargetTable, lists_every_ability) {
  EXPECT_EQ(sizeof(JobTargetRow),
            offsetof(JobTargetRow, jobs) + job_target_columns().size() * sizeof(JobTargetAbility));
  for (const JobTargetColumn& column : job_target_columns())
    EXPECT_FALSE(job_targets_that(column.ability).empty()) << column.name << ": of no target";
}

// A refusal says the reason: each ability that a target of jobs lacks has one.
TEST(TargetTable, gives_a_reason_for_what_a_target_of_jobs_cannot_do) {
  for (const JobTargetRow& row : job_target_table()) {
    for (const JobTargetColumn& column : job_target_columns()) {
      if (!row.jobs || row.*column.ability || column.ability == &JobTargetRow::images) continue;
      EXPECT_STRNE((row.*column.ability).how, "") << row.name << ": " << column.name;
    }
  }
}

TEST(TargetTable, what_a_target_includes_is_another_of_jobs) {
  for (const JobTargetRow& row : job_target_table()) {
    if (row.includes == nullptr) continue;
    ASSERT_NE(find_job_target_row(row.includes), nullptr) << row.name;
    EXPECT_TRUE(find_job_target_row(row.includes)->jobs && std::string(row.includes) != row.name) << row.name;
  }
}

TEST(TargetTable, what_follows_a_run_needs_one_that_is_submitted) {
  for (const JobTargetRow& row : job_target_table()) {
    EXPECT_TRUE(!row.submits || row.jobs) << row.name;
    for (const auto ability :
         {&JobTargetRow::chains, &JobTargetRow::exec, &JobTargetRow::contexts, &JobTargetRow::adopts})
      EXPECT_TRUE(!(row.*ability) || row.submits) << row.name;
    for (const auto ability :
         {&JobTargetRow::gang, &JobTargetRow::restarts, &JobTargetRow::budget, &JobTargetRow::arrays})
      EXPECT_TRUE(!(row.*ability) || row.jobs) << row.name;
  }
}

}  // namespace
}  // namespace systole
