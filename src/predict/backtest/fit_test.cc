#include "predict/backtest/fit.h"

#include <gtest/gtest.h>

#include <cmath>

#include "predict/backtest/least_squares.h"
#include "predict/backtest/testing/tiny_rows.h"

namespace systole::backtest {
namespace {

TEST(LeastSquares, finds_a_curve_and_stays_within_bounds) {
  LeastSquares problem;
  problem.least = {-10, -10};
  problem.most = {10, 10};
  problem.residuals = [](std::span<const double> x) {
    return std::vector<double>{10 * (x[1] - x[0] * x[0]), 1 - x[0]};  // Rosenbrock's function
  };
  std::vector<double> found = minimise(problem, {-1.2, 1});
  EXPECT_NEAR(found[0], 1, 1e-4);
  EXPECT_NEAR(found[1], 1, 1e-4);
  problem.most = {0.5, 10};
  found = minimise(problem, {-1.2, 1});
  EXPECT_DOUBLE_EQ(found[0], 0.5);
  EXPECT_NEAR(found[1], 0.25, 1e-4);
}

// Small models of many sizes on one machine and on several, with different bottlenecks, from two sources.
std::vector<Cells> many_cells() {
  std::vector<Cells> all;
  for (const int width : {512, 2048, 6144}) {
    for (const int chips : {8, 64}) {
      for (const int sequence_length : {512, 8192}) {
        for (const int tensor : {1, 4}) {
          for (const int widening : {1, 4}) {
            const std::size_t id = all.size();
            all.push_back({{"id", std::to_string(id)},
                           {"source_group", id / 2 % 2 == 0 ? "even" : "odd"},
                           {"n_layers", "4"},
                           {"d_model", std::to_string(width)},
                           {"n_heads", std::to_string(width / 128)},
                           {"n_kv_heads", ""},
                           {"d_ff", std::to_string(widening * width)},
                           {"vocab", "32768"},
                           {"seq_len", std::to_string(sequence_length)},
                           {"num_chips", std::to_string(chips)},
                           {"tp", std::to_string(tensor)},
                           {"dp", std::to_string(chips / tensor)},
                           {"global_batch", std::to_string(8 * chips)},
                           {"micro_batch", ""},
                           {"grad_accum", "1"}});
          }
        }
      }
    }
  }
  return all;
}

// Times and memory computed from a planted profile, once with a few outliers.
class PlantedRows : public testing::Test {
 protected:
  void SetUp() override {
    std::vector<PublishedRow> rows;
    for (const Cells& cells : many_cells()) rows.push_back(row_with(cells));
    prepared_ = prepare(std::move(rows), builtin_stacks(), builtin_catalog());
    planted_ = stack_of(builtin_stacks(), "megatron-core");
    const StackProfile expected;  // the numbers that are not planted
    for (const StackNumber& number : stack_numbers()) planted_.*number.member = expected.*number.member;
    planted_.products = 0.7;
    planted_.movement = 1.9;
    planted_.step = 0.01;
    planted_.network = 0.5;
    planted_.context = 3;
    for (PreparedRow& row : prepared_) {
      ASSERT_EQ(row.refused, "") << row.row.id;
      const PredictedRow predicted = predict(row, planted_);
      row.row.step_seconds = predicted.time.seconds;
      row.row.memory_gib = predicted.memory_gib;
    }
  }
  std::vector<const PreparedRow*> pointers() const {
    std::vector<const PreparedRow*> all;
    for (const PreparedRow& row : prepared_) all.push_back(&row);
    return all;
  }
  double mean_error(const StackProfile& stack) const {
    double sum = 0;
    for (const PreparedRow& row : prepared_)
      sum += std::abs(predict(row, stack).time.seconds / predict(row, planted_).time.seconds - 1);
    return sum / static_cast<double>(prepared_.size());
  }
  std::vector<PreparedRow> prepared_;
  StackProfile planted_;
};

TEST_F(PlantedRows, planted_numbers_are_found) {
  const StackProfile& before = *prepared_.front().stack;
  ASSERT_GT(mean_error(before), 0.1);
  const StackProfile fitted = fit_stack(pointers(), before);
  EXPECT_NEAR(fitted.products / planted_.products, 1, 0.05);
  EXPECT_NEAR(fitted.movement / planted_.movement, 1, 0.1);
  EXPECT_NEAR(fitted.context, planted_.context, 0.3);
  EXPECT_LT(mean_error(fitted), 0.02);
  EXPECT_EQ(fitted.name, before.name);
  EXPECT_EQ(fitted.half_copies, before.half_copies);
}

TEST_F(PlantedRows, a_few_rows_far_off_pull_little) {
  for (std::size_t i = 0; i < prepared_.size(); i += 8) *prepared_[i].row.step_seconds *= 5;
  EXPECT_LT(mean_error(fit_stack(pointers(), *prepared_.front().stack)), 0.06);
}

TEST_F(PlantedRows, a_fit_is_the_same_each_time_and_within_bounds) {
  const StackProfile first = fit_stack(pointers(), *prepared_.front().stack);
  const StackProfile second = fit_stack(pointers(), *prepared_.front().stack);
  for (const StackNumber& number : stack_numbers()) {
    EXPECT_EQ(first.*number.member, second.*number.member) << number.name;
    EXPECT_GE(first.*number.member, number.least) << number.name;
    EXPECT_LE(first.*number.member, number.most) << number.name;
  }
}

TEST_F(PlantedRows, rows_with_a_defect_and_rows_of_a_source_left_out_do_not_count) {
  for (PreparedRow& row : prepared_) {
    if (row.row.source != "odd") continue;
    *row.row.step_seconds *= 3;
    row.row.quality_flag = "approximate (source says ~)";
  }
  const std::vector<StackProfile> fitted = fit_stacks(prepared_, builtin_stacks());
  EXPECT_LT(mean_error(stack_of(fitted, "megatron-core")), 0.05);
  for (PreparedRow& row : prepared_) row.row.quality_flag.clear();
  const SourcesLeftOut left_out(prepared_, fitted);
  for (const PreparedRow& row : prepared_)
    EXPECT_LT(mean_error(row.row.source == "odd" ? left_out(row) : planted_), 0.05);
}

TEST(Medians, leave_out_the_stack_itself_and_the_default) {
  std::vector<StackProfile> stacks(4);
  const char* names[] = {"a", "b", "c", "default"};
  for (int i = 0; i < 4; ++i) {
    stacks[static_cast<std::size_t>(i)].name = names[i];
    stacks[static_cast<std::size_t>(i)].products = 0.6 + 0.1 * i;
  }
  EXPECT_DOUBLE_EQ(median_of_others(stacks, stacks[0]).products, 0.75);
  EXPECT_DOUBLE_EQ(median_of_others(stacks, stacks[3]).products, 0.7);
}

}  // namespace
}  // namespace systole::backtest
