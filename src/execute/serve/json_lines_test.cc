#include "execute/serve/json_lines.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

TEST(JsonLines, lines_know_their_number_and_lose_their_ends) {
  const std::vector<TextLine> lines = lines_of("\xEF\xBB\xBF{\"a\": 1}\r\n\n \t\r\nlast");
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[0].text, R"({"a": 1})");
  EXPECT_EQ(object_on(lines[0], "f").value().text_at("a"), "1");
  EXPECT_FALSE(lines[0].is_blank());
  EXPECT_TRUE(lines[1].is_blank() && lines[2].is_blank());
  EXPECT_EQ(lines[3].text, "last");
  EXPECT_EQ(lines[3].number, 4);
  EXPECT_TRUE(lines_of("").empty());
  EXPECT_TRUE(lines_of("\xEF\xBB\xBF").empty());
  EXPECT_EQ(lines_of("a\n").size(), 1U);
}

TEST(JsonLines, what_is_no_object_is_refused_at_its_line) {
  const std::string deep = std::string(100, '[') + std::string(100, ']');
  for (const std::string& text : {std::string("[3]"), std::string("{\"a\": "), std::string("\"caf\xe9\""),
                                  "{\"a\": " + deep + "}", std::string()}) {
    const Result<Node> wrong = object_on({text, 7}, "f.jsonl");
    ASSERT_FALSE(wrong.ok()) << text;
    EXPECT_EQ(wrong.error().kind, ErrorKind::invalid) << text;
    EXPECT_EQ(wrong.error().where.file, "f.jsonl") << text;
    EXPECT_EQ(wrong.error().where.line, 7) << text;
  }
}

}  // namespace
}  // namespace systole
