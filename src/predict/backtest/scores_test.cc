#include "predict/backtest/scores.h"

#include <gtest/gtest.h>

#include "predict/backtest/row_sets.h"
#include "predict/backtest/testing/tiny_rows.h"

namespace systole::backtest {
namespace {

TEST(ErrorSummaries, are_worked_out_by_hand) {
  const ErrorSummary summary = summary_of({0.1, -0.2, 0.3, -0.1});
  EXPECT_EQ(summary.rows, 4u);
  EXPECT_NEAR(summary.mean, 0.025, 1e-12);
  EXPECT_NEAR(summary.mean_abs, 0.175, 1e-12);
  EXPECT_NEAR(summary.median_abs, 0.15, 1e-12);  // of 0.1 0.1 0.2 0.3
  EXPECT_NEAR(summary.p90_abs, 0.27, 1e-12);     // seven tenths of the way from 0.2 to 0.3
  EXPECT_NEAR(summary.within_15, 0.5, 1e-12);
  EXPECT_EQ(summary_of({}).rows, 0u);
}

TEST(RankCorrelations, are_of_ranks) {
  EXPECT_NEAR(rank_correlation({1, 2, 3, 4}, {10, 100, 1000, 10000}), 1, 1e-12);
  EXPECT_NEAR(rank_correlation({1, 2, 3, 4}, {4, 3, 2, 1}), -1, 1e-12);
  EXPECT_NEAR(rank_correlation({1, 2, 3}, {1, 3, 2}), 0.5, 1e-12);
  EXPECT_NEAR(rank_correlation({1, 1, 2}, {1, 2, 3}), 0.8660254, 1e-6);  // ranks 0.5 0.5 2 beside 0 1 2
  EXPECT_EQ(rank_correlation({1, 1, 1}, {1, 2, 3}), 0);
}

// Rows made by hand: only the memory and times of their layouts are set.
struct MadeRows {
  std::vector<std::unique_ptr<PreparedRow>> rows;
  std::vector<ScoredRow> scored;

  void add(const Cells& cells, double seconds, double gib) {
    auto row = std::make_unique<PreparedRow>();
    row->row = row_with(cells);
    auto made = std::make_shared<RowParts>();
    made->cluster.chip.capacity = kGiB * 80;
    row->made = made;
    ScoredRow result;
    result.row = row.get();
    result.set = "sweep";
    result.predicted = PredictedRow();
    result.predicted->time.seconds = seconds;
    result.predicted->memory_gib = gib;
    rows.push_back(std::move(row));
    scored.push_back(result);
  }
  std::vector<const ScoredRow*> all() const {
    std::vector<const ScoredRow*> pointers;
    for (const ScoredRow& row : scored) pointers.push_back(&row);
    return pointers;
  }
};

// Measured: 10, 11, …, 15 s. The third, 12 s, is predicted to be fastest, but its memory is too tight; without it the
// first is.
TEST(ChoiceScores, regret_is_over_the_median_of_the_fastest_three) {
  MadeRows made;
  const double predicted[] = {5, 6, 4, 7, 8, 9};
  for (int i = 0; i < 6; ++i) made.add({{"step_time_use_s", std::to_string(10 + i)}}, predicted[i], i == 2 ? 79 : 40);
  const ChoiceScore all = choice_score(made.all(), false).value();
  EXPECT_EQ(all.groups, 1u);
  EXPECT_NEAR(all.mean_regret, 12.0 / 11 - 1, 1e-12);
  const ChoiceScore fitting = choice_score(made.all(), true).value();
  EXPECT_NEAR(fitting.mean_regret, 0, 1e-12);  // 10 s, better than the median of 10 11 12
  EXPECT_NEAR(all.mean_rank_correlation, 1 - 6.0 * (1 + 1 + 4) / (6 * 35), 1e-12);
  made.scored.pop_back();
  EXPECT_FALSE(choice_score(made.all(), false).has_value()) << "five layouts are too few";
}

// Microbatches 1, 2 and 4 took 10, 30 and 9 s, and 2 with another sharding 12 s: the second's three neighbours
// contradict it. If chosen, it takes 20 s more than the median of 9 10 12; among the others that of 9 s is chosen.
TEST(ChoiceScores, are_told_without_outliers_too) {
  const auto rows = [](const std::string& slow, const std::string& next) {
    MadeRows made;
    made.add({{"micro_batch", "1"}, {"step_time_use_s", "10"}}, 5, 40);
    made.add({{"micro_batch", "2"}, {"step_time_use_s", slow}}, 1, 40);
    made.add({{"micro_batch", "4"}, {"step_time_use_s", next}}, 2, 40);
    made.add({{"micro_batch", "2"}, {"zero_stage", "1"}, {"step_time_use_s", "12"}}, 6, 40);
    for (int dp = 1; dp <= 4; dp *= 2)
      made.add({{"dp", std::to_string(dp)}, {"tp", std::to_string(8 / dp)}, {"step_time_use_s", "40"}}, 9, 40);
    return made;
  };
  const ChoiceScore score = choice_score(rows("30", "9").all(), false).value();
  EXPECT_EQ(score.outliers, 1u);
  EXPECT_NEAR(score.mean_regret, 2, 1e-12);
  EXPECT_NEAR(score.steady_mean_regret, 0, 1e-12);
  EXPECT_NEAR(score.steady_p95_regret, 0, 1e-12);
  EXPECT_EQ(choice_score(rows("17.9", "9").all(), false)->outliers, 0u) << "less than half as long again as 12 s";
  EXPECT_EQ(choice_score(rows("30", "21").all(), false)->outliers, 0u) << "the larger microbatch was slow too";
}

// 30 GiB at 1 and 50 at 2 give 90 at 4, more than 80. A single point, 50 at 1, gives 125 at 4 and 75 at 2.
TEST(MemoryVerdicts, crashes_are_judged_by_their_neighbours) {
  MadeRows made;
  made.add({{"micro_batch", "1"}, {"peak_mem_gib", "30"}}, 1, 31);
  made.add({{"micro_batch", "2"}, {"peak_mem_gib", "50"}}, 1, 81);
  made.add({{"micro_batch", "4"}, {"peak_mem_gib", "crashed/OOM"}}, 1, 95);
  made.add({{"micro_batch", "8"}, {"peak_mem_gib", "crashed/OOM"}}, 1, 180);
  made.add({{"micro_batch", "1"}, {"tp", "2"}, {"dp", "4"}, {"peak_mem_gib", "50"}}, 1, 40);
  made.add({{"micro_batch", "4"}, {"tp", "2"}, {"dp", "4"}, {"peak_mem_gib", "crashed/OOM"}}, 1, 60);
  made.add({{"micro_batch", "2"}, {"tp", "2"}, {"dp", "4"}, {"peak_mem_gib", "crashed/OOM"}}, 1, 95);
  made.add({{"micro_batch", "1"}, {"tp", "4"}, {"dp", "2"}, {"peak_mem_gib", "crashed/OOM"}}, 1, 95);
  const MemoryVerdicts verdicts = memory_verdicts(made.all());
  EXPECT_EQ(verdicts.ran, 3u);
  EXPECT_EQ(verdicts.called_fitting, 2u);
  EXPECT_EQ(verdicts.beyond, 3u);
  EXPECT_EQ(verdicts.called_out_of_memory, 2u);
  EXPECT_EQ(verdicts.crashed_otherwise, 2u);
}

TEST(RowSets, sweeps_then_mixtures_then_types_then_stacks) {
  const auto set = [](const Cells& cells) {
    PreparedRow row;
    row.row = row_with(cells);
    row.stack = &stack_of(builtin_stacks(), row.row.framework);
    Result<RowJob> job = row_job(row.row, *row.stack, builtin_catalog());
    if (job.ok()) row.job = std::move(job).value();
    return std::string(set_of(row));
  };
  EXPECT_EQ(set({}), "dense-bf16");
  EXPECT_EQ(set({{"framework", "a stack of our own"}}), "unseen-stack");
  EXPECT_EQ(set({{"dtype", "mxfp8"}}), "fp8");
  EXPECT_EQ(set({{"n_experts", "8"}, {"top_k", "2"}, {"dtype", "mxfp8"}}), "moe");
  EXPECT_EQ(set({{"source_group", "VIA-Research/vTrain single-node"}}), "vtrain-single");
  EXPECT_EQ(set({{"source_group", "VIA-Research/vTrain multi-node"}}), "vtrain-multi");
  EXPECT_EQ(set({{"source_group", "huggingface/nanotron ultrascale sweep"}}), "sweep");
}

TEST(RowSets, defects_are_told_by_their_columns) {
  const auto defect = [](const Cells& cells) {
    PreparedRow row;
    row.row = row_with(cells);
    return std::string(defect_of(row));
  };
  EXPECT_EQ(defect({}), "");
  EXPECT_EQ(defect({{"quality_flag", "single sample (2nd iteration)"}}), "");
  EXPECT_EQ(defect({{"quality_flag", "TP*PP*DP*CP=2 != GPUs 8 in source"}}), "its layout or batch does not multiply");
  EXPECT_EQ(defect({{"quality_flag", "approximate (source says ~)"}}), "approximate, says its source");
  const Cells nanotron{{"framework", "nanotron"}, {"zero_stage", "0"}, {"pp", "2"}, {"dp", "4"}};
  EXPECT_EQ(defect(nanotron), "stalls with a pipeline and an optimizer that is not sharded");
  EXPECT_TRUE(before_a_repair(row_with({{"notes", "date 02-21; and more"}})));
  EXPECT_FALSE(before_a_repair(row_with({{"notes", "date 02-25; and more"}})));
  EXPECT_FALSE(before_a_repair(row_with({{"notes", "measured before date 02-21"}})));
}

}  // namespace
}  // namespace systole::backtest
