#include "execute/serve/eval/text_counts.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

// Values of Python 3.11: len(text), len(re.split(r"\s+", text)).
TEST(TextCounts, are_those_of_python) {
  EXPECT_EQ(count_characters(""), 0);
  EXPECT_EQ(count_characters("naïve 漢字"), 8);
  EXPECT_EQ(count_characters("a\xff\xfe"), 3) << "bytes that are no UTF-8 count as one each";
  EXPECT_EQ(count_words(""), 1);
  EXPECT_EQ(count_words("one"), 1);
  EXPECT_EQ(count_words("one  two\n\nthree"), 3);
  EXPECT_EQ(count_words(" one two "), 4) << "re.split leaves an empty text at both ends";
  EXPECT_EQ(count_words("a\u00a0b\u3000c\u200bd"), 3) << "a zero-width space is none";
  EXPECT_EQ(count_words("a\x1c"
                        "b"),
            2);
}

TEST(TextCounts, white_space_around_a_text_goes) {
  EXPECT_EQ(without_space_behind(" a b \n\u3000"), " a b");
  EXPECT_EQ(without_space_behind(" \n"), "");
  EXPECT_EQ(without_space_around("\t\u00a0 a b \n"), "a b");
  EXPECT_EQ(without_space_around(" "), "");
  EXPECT_EQ(without_space_around(""), "");
}

}  // namespace
}  // namespace systole
