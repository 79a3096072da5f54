#include "describe/lengths/length_histogram.h"

#include <gtest/gtest.h>

#include "describe/lengths/length_charts.h"
#include "describe/lengths/read_lengths.h"

namespace systole {
namespace {

TEST(LengthHistogram, counts_and_quantiles) {
  LengthHistogram texts;
  for (std::int64_t length = 1; length <= 100; ++length) texts.add(length);
  EXPECT_EQ(texts.count(), 100);
  EXPECT_EQ(texts.tokens(), 5050);
  EXPECT_EQ(texts.quantile(0.5), 50);
  EXPECT_EQ(texts.quantile(0.99), 99);
  EXPECT_EQ(texts.longest(), 100);
  EXPECT_EQ(LengthHistogram().longest(), 0);
  EXPECT_EQ(LengthHistogram().mean(), 0);
}

TEST(LengthHistogram, of_shards_add_up) {
  LengthHistogram one, other, whole;
  for (const std::int64_t length : {3, 70'000, 3, 9}) one.add(length), whole.add(length);
  for (const std::int64_t length : {70'000, 3, 200'000}) other.add(length), whole.add(length);
  one.add(other);
  EXPECT_EQ(one.counts(), whole.counts());
  EXPECT_EQ(one.counts(), (std::vector<LengthCount>{{3, 3}, {9, 1}, {70'000, 2}, {200'000, 1}}));
  EXPECT_EQ(one.tokens(), whole.tokens());
}

TEST(LengthHistogram, cut_into_pieces) {
  LengthHistogram texts;
  texts.add(10, 2);
  texts.add(8);
  texts.add(3);
  EXPECT_EQ(texts.in_pieces(4).counts(), (std::vector<LengthCount>{{2, 2}, {3, 1}, {4, 6}}));
  EXPECT_EQ(texts.in_pieces(4).tokens(), texts.tokens());
}

std::string read(std::string_view text) {
  const Result<LengthHistogram> read = read_lengths(text, "h.csv");
  if (!read.ok())
    return fmt::format("{}:{}: {}", read.error().where.file, read.error().where.line, read.error().message);
  std::string counts;
  for (const auto& [length, count] : read->counts()) counts += fmt::format("{}x{} ", length, count);
  return counts;
}

TEST(LengthHistogram, read_from_files) {
  for (const char* same : {"length,count\n20,3\n31,1\n", "20\t3\r\n31 1\n", "20\n20\n# more\n\n20\n31", "31;1\n20;3",
                           "{\"20\": 3, \"31\": 1}", "[[20, 2], [31, 1], [20, 1]]", " [20, 31, 20, 20]",
                           "{\"systole\": \"data lengths\", \"lengths\": [[20, 3], [31, 1]]}"})
    EXPECT_EQ(read(same), "20x3 31x1 ") << same;
  EXPECT_EQ(read("length,count\n20,3\n0,1\n"), "h.csv:3: a length of 0: from 1 to 4294967295 is one");
  EXPECT_EQ(read("20,-1\n"), "h.csv:1: a count of -1 of length 20");
  EXPECT_EQ(read("20,1\nx,1\n"), "h.csv:2: expected a length and a count, found 'x,1'");
  EXPECT_EQ(read("20,1.5\n"), "h.csv:1: expected a length and a count, found '20,1.5'");
  EXPECT_EQ(read("4000000000,4000000000\n"), "h.csv:1: more than 2^60 tokens together");
  EXPECT_EQ(read("length,count\n"), "h.csv:0: there is no length in it");
  EXPECT_EQ(read("[[1, 2, 3]]"), "h.csv:1: expected [length, count], found a list");
  EXPECT_EQ(read("{\"a\": 2}"), "h.csv:1: 'a' is no length");
}

TEST(LengthCharts, every_row_is_in_a_range) {
  LengthHistogram rows;
  rows.add(1, 5);
  rows.add(40, 90);
  rows.add(1000, 5);
  const std::string text = length_drawing(rows);
  EXPECT_NE(text.find("90.0%  ████████████████████████████████████████████████\n"), std::string::npos) << text;
  EXPECT_NE(text.find(" 5.0%  ██"), std::string::npos) << text;
  EXPECT_EQ(length_drawing({}), "");
  const std::int64_t edges[] = {48, 1000};
  const std::string svg = length_svg(rows, edges, "lengths of <texts>");
  EXPECT_NE(svg.find("lengths of &lt;texts>"), std::string::npos) << svg;
  EXPECT_NE(svg.find(": 90 rows, 90.0%</title>"), std::string::npos) << svg;
  EXPECT_NE(svg.find(">48</text>"), std::string::npos) << svg;
}

}  // namespace
}  // namespace systole
