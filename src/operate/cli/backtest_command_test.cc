// `systole backtest` on tables of a few rows.

#include <gtest/gtest.h>

#include "ground/base/document.h"
#include "operate/cli/testing/run_systole.h"
#include "predict/backtest/testing/tiny_rows.h"

namespace systole::cli {
namespace {

using backtest::Cells;

class BacktestCommand : public testing::Test {
 protected:
  BacktestCommand() {
    Cells small{{"n_layers", "4"}, {"d_model", "256"}, {"n_heads", "4"},   {"n_kv_heads", "4"},
                {"d_ff", "512"},   {"vocab", "1024"},  {"seq_len", "128"}, {"step_time_use_s", "0.5"}};
    small.merge(backtest::usual_cells());
    Cells refused = small;
    refused["id"] = "b";
    refused["notes"] = "hybrid Mamba";
    systole_.write("rows.csv", backtest::table_of({small, refused}));
  }
  Captured run(const std::string& options) const { return systole_.shell("$SYSTOLE backtest " + options); }
  SystoleRunner systole_;
};

TEST_F(BacktestCommand, tells_errors_and_refusals) {
  const Captured seen = run("rows.csv");
  EXPECT_EQ(seen.exit.code, 0) << seen.err;
  EXPECT_NE(seen.out.find("errors by set of rows\n"), std::string::npos) << seen.out;
  EXPECT_NE(seen.out.find("dense-bf16  step time"), std::string::npos) << seen.out;
  EXPECT_NE(seen.out.find("hybrid Mamba"), std::string::npos) << seen.out;
  EXPECT_EQ(seen.err, "") << "progress is for terminals";
}

TEST_F(BacktestCommand, json_has_each_row_and_files_are_written) {
  const Captured seen = run("rows.csv --json --svg dots.svg --save-stacks stacks.yaml --page page.md");
  ASSERT_EQ(seen.exit.code, 0) << seen.err;
  const Node document = parse_json(seen.out, "stdout").value();
  EXPECT_EQ(document.find("systole")->text(), "backtest");
  EXPECT_EQ(document.find("rows")->items().size(), 2u);
  EXPECT_EQ(document.find("summary")->items()[0].find("rows")->text(), "1");
  const Captured files =
      systole_.shell("head -c 4 dots.svg; head -n 1 page.md; $SYSTOLE backtest rows.csv --stacks stacks.yaml");
  EXPECT_EQ(files.exit.code, 0) << files.err;
  EXPECT_EQ(files.out.substr(0, 32), "<svg# How far predictions are of");
}

TEST_F(BacktestCommand, a_table_without_its_columns_is_refused_at_its_place) {
  systole_.write("few.csv", "id,model\na,b\n");
  const Captured seen = run("few.csv");
  EXPECT_EQ(seen.exit.code, 2);
  EXPECT_NE(seen.err.find("few.csv:1:1: error: missing columns: source_group, accelerator"), std::string::npos)
      << seen.err;
  EXPECT_NE(run("none.csv").err.find("there is no file 'none.csv'"), std::string::npos);
  const Captured set = run("rows.csv --set densebf16");
  EXPECT_EQ(set.exit.code, 2);
  EXPECT_NE(set.err.find("did you mean 'dense-bf16'"), std::string::npos) << set.err;
}

TEST_F(BacktestCommand, tables_with_nothing_to_judge_are_told) {
  const auto told = [&](const std::string& options, int code) {
    const Captured seen = run(options);
    EXPECT_EQ(seen.exit.code, code) << seen.err;
    return seen.err;
  };
  EXPECT_EQ(systole_.shell("head -n 1 rows.csv > head.csv; head -n 3 rows.csv | sed 2d > refused.csv").exit.code, 0);
  EXPECT_TRUE(told("head.csv", 2).starts_with("head.csv:1:1: error: there is a header, and no row under it"));
  EXPECT_TRUE(told("rows.csv rows.csv", 2).starts_with("rows.csv:2:1: error: the id 'a' is in rows.csv:2 already"));
  EXPECT_TRUE(told("rows.csv --set moe", 2).starts_with("error: --set: none of the 2 rows is of the set 'moe'"));
  EXPECT_TRUE(told("refused.csv", 1).starts_with("warning: no row was predicted"));
  systole_.write("bytes.csv", "id,\xff\n");
  EXPECT_TRUE(told("bytes.csv", 2).starts_with("bytes.csv:1:4: error: byte 0xff at offset 3 is not UTF-8"));
}

}  // namespace
}  // namespace systole::cli
