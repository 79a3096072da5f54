#include "ground/base/csv.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

CsvTable table(const char* text) { return CsvTable::read(text, "t.csv").value(); }

std::vector<std::string> rows(const CsvTable& t) {
  std::vector<std::string> found;
  for (std::size_t r = 0; r < t.num_rows(); ++r) {
    std::string& row = found.emplace_back();
    for (std::size_t c = 0; c < t.width(); ++c) row += "[" + std::string(t.at(r, c)) + "]";
  }
  return found;
}

using Rows = std::vector<std::string>;

TEST(Csv, rows_of_fields) {
  EXPECT_EQ(rows(table("a,b\n1,2\n,\n3,4")), (Rows{"[1][2]", "[][]", "[3][4]"}));
  EXPECT_EQ(rows(table("a,b\r\n1,2\r\n3,4\r\n")), (Rows{"[1][2]", "[3][4]"}));
  EXPECT_EQ(rows(table("\xEF\xBB\xBF"
                       "a\nx\n")),
            Rows{"[x]"});
  EXPECT_EQ(table("a,b").num_rows(), 0U);
  EXPECT_EQ(table("a,b\n").num_rows(), 0U);
  EXPECT_EQ(rows(table("a\n\n")), Rows{"[]"});
}

TEST(Csv, quoted_fields) {
  EXPECT_EQ(rows(table("a,b\n\"x, y\",\"\"\n")), Rows{"[x, y][]"});
  EXPECT_EQ(rows(table("a,b\n\"x \"\"y\"\"\",z\n")), Rows{"[x \"y\"][z]"});
  EXPECT_EQ(rows(table("a,b\n\"\"\"\",z\r\n")), Rows{"[\"][z]"});
  EXPECT_EQ(rows(table("a,b\n\"one\r\ntwo\",z\n")), Rows{"[one\r\ntwo][z]"});
}

// Views stay valid when the table moves, even if the text is short enough for the small string optimization.
TEST(Csv, a_table_can_be_moved) {
  CsvTable first = table("a\n\"\"\"\"\n");
  const std::string_view view = first.at(0, 0);
  const CsvTable second = std::move(first);
  EXPECT_EQ(second.at(0, 0).data(), view.data());
  EXPECT_EQ(second.at(0, 0), "\"");
  EXPECT_EQ(rows(CsvTable(table("a\nb"))), Rows{"[b]"});
}

TEST(Csv, fields_know_their_place) {
  const CsvTable t = table("a,b\n\"one\ntwo\",x\n\xC3\xA9,y\n");
  EXPECT_EQ(t.where(0, 0), (Where{"t.csv", 2, 1}));
  EXPECT_EQ(t.where(0, 1), (Where{"t.csv", 3, 6}));
  EXPECT_EQ(t.where(1, 1), (Where{"t.csv", 4, 4}));
  EXPECT_EQ(t.column("b"), 1U);
  EXPECT_EQ(t.column("c"), CsvTable::kNoColumn);
}

void expect_refused(const char* text, const std::vector<const char*>& says) {
  const Result<CsvTable> refused = CsvTable::read(text, "t.csv");
  ASSERT_FALSE(refused.ok()) << text;
  EXPECT_EQ(refused.error().kind, ErrorKind::invalid);
  EXPECT_EQ(refused.error().others.size() + 1, says.size()) << to_string(refused.error());
  for (const char* part : says)
    EXPECT_NE(to_string(refused.error()).find(part), std::string::npos) << part << "\n" << to_string(refused.error());
}

TEST(Csv, what_is_wrong_is_told_at_once_and_with_its_place) {
  expect_refused("", {"t.csv:1:1: error: no header"});
  expect_refused("\xEF\xBB\xBF", {"no header"});
  expect_refused("a,b\n1\n1,2\n1,2,3\n", {"t.csv:2:1: error: this row has 1 field, and the header names 2 columns",
                                          "t.csv:4:1: error: this row has 3 fields"});
  expect_refused("a,b\n\n1,2\n", {"t.csv:2:1: error: this row has 1 field"});
  expect_refused("a,b\n1,\"2\n3,4\n", {"t.csv:2:3: error: the quote that opens here is never closed"});
  expect_refused("a,b\n\"1\"x,2\n", {"t.csv:2:4: error: text behind a closing quote"});
  expect_refused("a,b\n1,x\"y\"\n", {"t.csv:2:4: error: a quote amid a field", "t.csv:2:6: error: a quote amid"});
  expect_refused("a,b\n1\r,2\n", {"t.csv:2:2: error: a carriage return without a line feed"});
  expect_refused("a,,a\n", {"t.csv:1:3: error: a column without a name", "t.csv:1:4: error: the column 'a' is there"});
}

TEST(Csv, the_columns_that_are_expected) {
  constexpr std::string_view kRequired[] = {"item", "price", "unit"}, kOptional[] = {"note"};
  const auto expect = [&](const char* text) { return table(text).expect_columns(kRequired, kOptional); };
  EXPECT_TRUE(expect("item,price,unit\n").ok());
  EXPECT_TRUE(expect("note,unit,price,item\n").ok());
  const std::string missing = to_string(expect("item,nota\n").error());
  for (const char* says : {"t.csv:1:1: error: missing columns: price, unit", "item,price,unit",
                           "t.csv:1:6: error: unknown column 'nota'", "did you mean 'note'"})
    EXPECT_NE(missing.find(says), std::string::npos) << says << "\n" << missing;
}

}  // namespace
}  // namespace systole
