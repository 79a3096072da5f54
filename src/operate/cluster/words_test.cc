#include "operate/cluster/words.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

TEST(Words, lines_are_taken_until_there_are_none) {
  std::string_view text = "a\n\nb";
  EXPECT_EQ(take_line(text), "a");
  EXPECT_EQ(take_line(text), "");
  EXPECT_EQ(take_line(text), "b");
  EXPECT_TRUE(text.empty());
  EXPECT_EQ(take_line(text), "");
}

TEST(Words, are_what_stands_between_spaces) {
  EXPECT_EQ(words_of("began 17  4"), (std::vector<std::string_view>{"began", "17", "", "4"}));
  EXPECT_EQ(words_of("a "), (std::vector<std::string_view>{"a"}));
  EXPECT_TRUE(words_of("").empty());
}

TEST(Words, numbers_are_whole_and_not_negative) {
  EXPECT_EQ(number_of("0"), 0);
  EXPECT_EQ(number_of("9223372036854775807"), 9223372036854775807);
  for (const char* word : {"", "-1", "+1", "1 ", "1.0", "N/A", "9223372036854775808"})
    EXPECT_FALSE(number_of(word)) << word;
}

}  // namespace
}  // namespace systole
