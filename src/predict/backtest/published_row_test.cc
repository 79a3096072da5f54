#include "predict/backtest/published_row.h"

#include <gtest/gtest.h>

#include "predict/backtest/testing/tiny_rows.h"

namespace systole::backtest {
namespace {

std::string errors_of(const std::string& text) {
  const auto rows = read_published(text, "rows.csv");
  return rows.ok() ? "no error" : to_string(rows.error());
}

std::string with_cell(const std::string& column, const std::string& value) {
  Cells cells = usual_cells();
  cells[column] = value;
  return table_of({cells});
}

TEST(PublishedRows, types_what_columns_hold) {
  const PublishedRow row = row_with({{"micro_batch", "0.5"},
                                     {"step_time_use_s", "1.25"},
                                     {"peak_mem_gib", "61.5"},
                                     {"sequence_parallel", "yes"},
                                     {"notes", "a, b"}});
  EXPECT_EQ(row.id, "a");
  EXPECT_EQ(row.layers, 32);
  EXPECT_EQ(row.microbatch, 0.5);
  EXPECT_EQ(row.step_seconds, 1.25);
  EXPECT_EQ(row.memory_gib, 61.5);
  EXPECT_EQ(row.sequence_parallel, true);
  EXPECT_EQ(row.notes, "a, b");
  EXPECT_FALSE(row.tied);
  EXPECT_FALSE(row.crashed);
  EXPECT_EQ(row.cp, std::nullopt);
}

TEST(PublishedRows, words_in_columns_of_numbers_are_those_that_are_known) {
  EXPECT_TRUE(row_with({{"peak_mem_gib", "OOM (>80 GB)"}}).crashed);
  EXPECT_TRUE(row_with({{"peak_mem_gib", "crashed/OOM"}}).crashed);
  EXPECT_TRUE(row_with({{"vpp", "interleaved (count not stated)"}}).chunks_untold);
  EXPECT_EQ(errors_of(with_cell("peak_mem_gib", "much")).substr(0, 11), "rows.csv:2:");
  EXPECT_NE(errors_of(with_cell("peak_mem_gib", "much")).find("peak_mem_gib: 'much' is no number"), std::string::npos);
}

TEST(PublishedRows, columns_that_are_missing_are_named_and_others_are_fine) {
  std::string text = table_of({usual_cells()});
  EXPECT_EQ(errors_of("extra," + text.insert(text.find('\n') + 1, "x,")), "no error");
  const std::string errors = errors_of("id,source_group,n_layers\na,b,3\n");
  EXPECT_EQ(errors.substr(0, 41), "rows.csv:1:1: error: missing columns: acc");
  EXPECT_NE(errors.find("step_time_use_s"), std::string::npos);
  EXPECT_EQ(errors.find("n_layers"), std::string::npos);
}

TEST(PublishedRows, a_bad_number_is_an_error_at_its_place) {
  const std::string errors = errors_of(with_cell("n_layers", "thirty"));
  EXPECT_NE(errors.find("error: n_layers: 'thirty' is no number"), std::string::npos) << errors;
  EXPECT_EQ(errors.substr(0, 11), "rows.csv:2:") << errors;
  EXPECT_NE(errors_of(with_cell("num_chips", "2.5")).find("no whole number"), std::string::npos);
  EXPECT_NE(errors_of(with_cell("global_batch", "-4")).find("negative"), std::string::npos);
}

TEST(PublishedRows, a_row_has_an_id_of_its_own) {
  Cells second = usual_cells();
  EXPECT_NE(errors_of(table_of({usual_cells(), second})).find("rows.csv:3:1: error: the id 'a' is in line 2"),
            std::string::npos);
  second["id"] = "";
  EXPECT_NE(errors_of(table_of({second})).find("a row without an id"), std::string::npos);
}

}  // namespace
}  // namespace systole::backtest
