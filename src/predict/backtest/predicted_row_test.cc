#include "predict/backtest/predicted_row.h"

#include <gtest/gtest.h>

#include "describe/job/job.h"
#include "predict/backtest/testing/tiny_rows.h"

namespace systole::backtest {
namespace {

// A small model, so that Programs are built quickly.
Cells small_cells() {
  return {{"n_layers", "8"}, {"d_model", "256"}, {"n_heads", "4"},       {"n_kv_heads", "4"},     {"d_ff", "512"},
          {"vocab", "1024"}, {"seq_len", "128"}, {"global_batch", "64"}, {"step_time_use_s", "1"}};
}
Cells with(Cells cells, const Cells& others) {
  for (const auto& [name, value] : others) cells[name] = value;
  return cells;
}
PreparedRow prepared(const Cells& cells) {
  return prepare({row_with(cells)}, builtin_stacks(), builtin_catalog(), {.threads = 1}).front();
}

// Predictions from a few microbatches equal those from Programs with all of them, except for the sum of the losses: one
// addition per microbatch.
TEST(PredictedRows, few_microbatches_stand_for_many) {
  for (const Cells& layout : {Cells{{"micro_batch", "1"}, {"num_chips", "4"}, {"dp", "4"}},
                              Cells{{"pp", "2"}, {"dp", "4"}, {"global_batch", "96"}},
                              Cells{{"pp", "2"}, {"vpp", "2"}, {"dp", "4"}, {"global_batch", "96"}}}) {
    const PreparedRow row = prepared(with(small_cells(), layout));
    ASSERT_EQ(row.refused, "");
    const RowJob& job = *row.job;
    ASSERT_GT(job.workload.train.microbatches, 8);
    std::vector<std::unique_ptr<const Program>> whole;
    std::vector<const Program*> stages;
    const Target target = target_of_accelerators();
    for (std::int64_t stage = 0; stage < job.stages(); ++stage) {
      whole.push_back(
          make_job(job.workload, job.strategy, target, {}, stage * job.cluster.devices / job.stages()).value().program);
      stages.push_back(whole.back().get());
    }
    const Cluster cluster = cluster_of(*job.chip, job.cluster).value();
    const StepParts parts = step_parts(stages, job.strategy.pipeline, static_cast<int>(job.workload.train.microbatches),
                                       cluster, job.kernels);
    const PredictedRow predicted = predict(row, *row.stack);
    const auto additions = static_cast<double>(job.workload.train.microbatches);
    EXPECT_NEAR(predicted.time.seconds, step_time(parts, *row.stack).seconds, additions * row.stack->launch);
    EXPECT_NEAR(row.made->parts.model_flops / parts.model_flops, 1, 1e-9);
    double most = 0;
    for (const Program* program : stages)
      most = std::max(most, device_memory(*program, job.kernels, *row.stack).total() / kGiB);
    EXPECT_NEAR(predicted.memory_gib / most, 1, 1e-3);  // ids of more microbatches, a few KiB
  }
}

// 6 x parameters in products + the causal half of attention, for each token.
TEST(PredictedRows, mfu_is_of_model_flops) {
  const PreparedRow row = prepared(small_cells());
  ASSERT_EQ(row.refused, "");
  const PredictedRow predicted = predict(row, *row.stack);
  const double per_layer = 4.0 * 256 * 256 + 3.0 * 256 * 512, head = 1024.0 * 256;
  const double per_token = 6 * (8 * per_layer + head) + 6.0 * 8 * 256 * 128;
  const double flops = per_token * 64 * 128;
  EXPECT_NEAR(predicted.mfu * predicted.time.seconds * 8 * 989e12 / flops, 1, 0.01);
}

TEST(PredictedRows, rows_that_lie_alike_share_their_parts) {
  const std::vector<PreparedRow> rows =
      prepare({row_with(small_cells()), row_with(with(small_cells(), {{"id", "b"}, {"step_time_use_s", "2"}})),
               row_with(with(small_cells(), {{"id", "c"}, {"accelerator", "A100-SXM-80GB"}}))},
              builtin_stacks(), builtin_catalog());
  EXPECT_EQ(rows[0].made, rows[1].made);
  EXPECT_NE(rows[0].made, rows[2].made);
  EXPECT_GT(predict(rows[2], *rows[2].stack).time.seconds, predict(rows[0], *rows[0].stack).time.seconds);
}

TEST(PredictedRows, a_layout_that_no_program_has_is_refused) {
  const PreparedRow row = prepared(with(small_cells(), {{"n_heads", "3"}, {"n_kv_heads", "2"}, {"head_dim", "64"}}));
  EXPECT_EQ(row.made, nullptr);
  EXPECT_EQ(row.refused.substr(0, 12), "no Program: ") << row.refused;
}

}  // namespace
}  // namespace systole::backtest
