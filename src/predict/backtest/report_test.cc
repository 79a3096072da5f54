#include "predict/backtest/report.h"

#include <gtest/gtest.h>

#include "predict/backtest/scatter.h"
#include "predict/backtest/testing/tiny_rows.h"

namespace systole::backtest {
namespace {

class Reports : public testing::Test {
 protected:
  void SetUp() override {
    const Cells small{{"n_layers", "4"}, {"d_model", "256"}, {"n_heads", "4"},   {"n_kv_heads", "4"},
                      {"d_ff", "512"},   {"vocab", "1024"},  {"seq_len", "128"}, {"step_time_use_s", "0.5"}};
    const auto row = [&](const char* id, Cells others) {
      others.merge(Cells(small));
      others["id"] = id;
      return row_with(others);
    };
    prepared_ = prepare({row("sound", {{"peak_mem_gib", "4"}}), row("flagged", {{"quality_flag", "approximate"}}),
                         row("eight-bit", {{"dtype", "mxfp8"}}), row("refused", {{"notes", "hybrid Mamba"}})},
                        builtin_stacks(), builtin_catalog(), {.threads = 1});
    scores_ = score(prepared_);
  }
  std::vector<PreparedRow> prepared_;
  Scores scores_;
};

TEST_F(Reports, every_row_is_in_the_document) {
  const Node node = report_node(scores_, {}, {});
  ASSERT_EQ(node.find("rows")->items().size(), 4u);
  const Node& sound = node.find("rows")->items()[0];
  EXPECT_EQ(sound.find("set")->text(), "dense-bf16");
  EXPECT_EQ(sound.find("measured_step_time_s")->text(), "0.5");
  const double predicted = sound.find("predicted_step_time_s")->as_double().value();
  EXPECT_NEAR(sound.find("step_time_error")->as_double().value(), predicted / 0.5 - 1, 1e-4);
  EXPECT_EQ(node.find("rows")->items()[1].find("flagged")->text(), "approximate, says its source");
  EXPECT_EQ(node.find("rows")->items()[3].find("refused")->text(), "hybrid Mamba");
}

TEST_F(Reports, a_flagged_row_is_counted_apart) {
  const Node node = report_node(scores_, {}, {});
  const Node& summary = node.find("summary")->items()[0];
  EXPECT_EQ(summary.find("set")->text(), "dense-bf16");
  EXPECT_EQ(summary.find("quantity")->text(), "step_time");
  EXPECT_EQ(summary.find("rows")->text(), "1");
  EXPECT_EQ(summary.find("with_flagged")->find("rows")->text(), "2");
  EXPECT_EQ(node.find("summary")->items()[1].find("quantity")->text(), "memory");
  for (const char* key : {"mean_abs_error", "median_abs_error", "p90_abs_error"}) EXPECT_NE(summary.find(key), nullptr);
}

// Ten numbers of a stack price time, two price memory; facts of an H100 that were fitted to published rows are added.
TEST_F(Reports, fitted_numbers_stand_beside_errors) {
  std::size_t found = 0;
  for (const auto& [key, fact] : builtin_catalog().find("h100").value()->facts)
    found += fact.source.find("data/validation") != std::string::npos;
  EXPECT_EQ(fitted_numbers(scores_, "dense-bf16", ScoredQuantity::step_time), 10 + found);
  EXPECT_EQ(fitted_numbers(scores_, "dense-bf16", ScoredQuantity::memory), 2u);
}

TEST_F(Reports, one_set_can_be_asked_for) {
  ReportOptions options;
  options.set = "fp8";
  const Node node = report_node(scores_, {}, options);
  EXPECT_EQ(node.find("rows")->items().size(), 1u);
  EXPECT_EQ(node.find("summary")->items().size(), 1u);
  for (const ReportTable& table : report_tables(scores_, {}, options))
    for (const std::vector<std::string>& cells : table.rows) EXPECT_EQ(cells.size(), table.headers.size());
}

TEST_F(Reports, the_picture_has_a_dot_for_each_row_that_was_measured) {
  const std::string svg = scatter_svg(scores_, "");
  std::size_t dots = 0;
  for (std::size_t at = svg.find("<title>"); at != svg.npos; at = svg.find("<title>", at + 1)) ++dots;
  EXPECT_EQ(dots, 3u);
  EXPECT_NE(svg.find("megatron-core (3)"), svg.npos);
  EXPECT_EQ(scatter_svg(scores_, "moe").find("<title>"), svg.npos);
}

}  // namespace
}  // namespace systole::backtest
