#include "execute/data/text_pattern.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

std::optional<std::string> first(std::string_view regex, std::string_view text) {
  return TextPattern::compile(regex).value().first(text).value();
}

TEST(TextPattern, takes_the_first_match_or_its_first_group_that_is_not_empty) {
  EXPECT_EQ(first(R"(\d+)", "a 12 b 34"), "12");
  EXPECT_EQ(first(R"(#### (-?[0-9.,]+))", "so\n#### -1,204\n#### 5"), "-1,204");
  EXPECT_EQ(first(R"(\((\w)\)|answer: (\w+))", "the answer: blue"), "blue");
  EXPECT_EQ(first(R"(x(y?))", "x"), "") << "a match whose groups are empty";
  EXPECT_EQ(first(R"(x|(y)?z)", "x"), "") << "a group that took no part";
  EXPECT_EQ(first(R"(\d+)", "none"), std::nullopt);
  EXPECT_EQ(first(R"(\d+)", ""), std::nullopt);
  EXPECT_EQ(first(R"(\w+)", " größer"), "größer") << "letters are Unicode's";
}

TEST(TextPattern, refuses_what_is_no_pattern_and_searches_without_end) {
  const Result<TextPattern> open = TextPattern::compile("(a");
  ASSERT_FALSE(open.ok());
  EXPECT_EQ(open.error().kind, ErrorKind::invalid);
  EXPECT_NE(open.error().message.find("at byte 2"), std::string::npos) << open.error().message;
  EXPECT_FALSE(TextPattern::compile("*").ok());
  EXPECT_FALSE(TextPattern::compile("\xff").ok());
  const TextPattern bomb = TextPattern::compile("(a+)+$").value();
  const Result<std::optional<std::string>> found = bomb.first(std::string(60, 'a') + "b");
  ASSERT_FALSE(found.ok());
  EXPECT_NE(found.error().hint.find("backtracks less"), std::string::npos);
}

}  // namespace
}  // namespace systole
