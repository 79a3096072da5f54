#include "ground/draw/text_chart.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

namespace systole {
namespace {

std::size_t columns_of(const std::string& line) {
  return static_cast<std::size_t>(
      std::count_if(line.begin(), line.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

TEST(TextChart, more_is_right_and_up_and_fits_a_terminal) {
  TextChart chart;
  chart.mark(1, 1000, "P");
  chart.mark(100, 10, "Q");
  chart.mark(100, 10, "R");
  const std::string text = chart.text("dollars", "hours");
  EXPECT_LT(text.find('P'), text.find('R')) << "the dearer one stands above\n" << text;
  EXPECT_EQ(text.find('Q'), std::string::npos) << "the later one is seen";
  std::istringstream lines(text);
  std::size_t of_a = 0, of_c = 0;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(columns_of(line), 100u) << line;
    EXPECT_TRUE(line.empty() || line.back() != ' ') << line;
    if (const std::size_t at = line.rfind('R'); at != std::string::npos && of_c == 0) of_c = columns_of(line);
    if (line.ends_with("P")) of_a = columns_of(line);
  }
  EXPECT_LT(of_a, of_c);
  for (const char* tick : {"500", "1000", "20", "hours", "dollars"})
    EXPECT_NE(text.find(tick), std::string::npos) << tick << "\n" << text;
}

TEST(TextChart, a_single_mark_and_none_are_drawn) {
  EXPECT_EQ(TextChart().text("y", "x"), "");
  TextChart chart;
  chart.mark(3, 3, "a");
  const std::string text = chart.text("y", "x");
  EXPECT_NE(text.find('a'), std::string::npos);
  EXPECT_NE(text.find("3 ┤"), std::string::npos) << text;
  EXPECT_NE(text.find("┬"), std::string::npos) << text;
}

TEST(StackedBar, parts_are_as_long_as_their_shares_and_none_is_lost) {
  EXPECT_EQ(stacked_bar({{0.5, "a"}, {0.25, "b"}, {0.25, "c"}}, 8), "aaaabbcc");
  EXPECT_EQ(stacked_bar({{0.05, "a"}, {0.05, "b"}, {0.4, "c"}}, 10), "acccc");
  EXPECT_EQ(stacked_bar({{2, "█"}}, 2), "██");
}

TEST(Shortened, says_that_something_is_missing) {
  EXPECT_EQ(shortened("fsdp=8", 6), "fsdp=8");
  EXPECT_EQ(shortened("fsdp=16", 6), "fsdp=…");
}

}  // namespace
}  // namespace systole
