#include "ground/base/shown_text.h"

#include <gtest/gtest.h>

#include "ground/base/document.h"

namespace systole {
namespace {

TEST(ShownText, reaches_no_terminal_as_an_order) {
  EXPECT_EQ(printable("a\x1b]0;title\x07z"), "a\\u001b]0;title\\u0007z");
  EXPECT_EQ(printable("\x1b[2J\r\b\x7f"), "\\u001b[2J\\u000d\\u0008\\u007f");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\u009b31m")
      << "the control sequence introducer of eight bits, in UTF-8";
  EXPECT_EQ(printable("\x9b"
                      "31m"),
            "\\x9b31m")
      << "and as a byte";
  EXPECT_EQ(printable("a\xe2\x80\xae"
                      "b"),
            "a\\u202eb")
      << "writes backwards";
  EXPECT_EQ(printable(std::string_view("\0", 1)), "\\u0000");
}

TEST(ShownText, that_is_harmless_stays_as_it_is) {
  const std::string text = "steps\t12\n\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80 \\u001b";
  EXPECT_EQ(printable(text), text);
  EXPECT_EQ(printable("\x1b[1;31merror:\x1b[0m \x1b[5m", true), "\x1b[1;31merror:\x1b[0m \\u001b[5m");
  EXPECT_EQ(printable("\x1b[1m"), "\\u001b[1m");
}

TEST(ShownText, that_comes_in_pieces_keeps_its_characters) {
  EXPECT_EQ(printable_piece("a\xe2\x82") + printable_piece("\xac\x1b"), "a\xe2\x82\xac\\u001b");
}

TEST(ShownText, in_a_string_of_json_stands_for_the_same) {
  const Node node = Node::map({{"name", std::string("\x1b\xc2\x9b\x7f\xe2\x80\xae\"\\")}});
  const std::string shown = printable(to_json(node));
  EXPECT_EQ(shown.find('\x7f'), shown.npos);
  EXPECT_EQ(parse_json(shown, "x").value(), node);
}

TEST(ShownText, has_no_password_of_an_address) {
  EXPECT_EQ(without_passwords("no http://me:secret@host:1/a@b, ftp://token@h"),
            "no http://***@host:1/a@b, ftp://***@h");
  EXPECT_EQ(without_passwords("'https://me:p@ss@host'"), "'https://***@host'") << "the last @ ends it";
  for (const std::string text : {"https://host/@x", "a@b", "://", "", "x://", "http://host?a@b", "http://h m@x"})
    EXPECT_EQ(without_passwords(text), text);
}

}  // namespace
}  // namespace systole
