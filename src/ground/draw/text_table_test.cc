#include "ground/draw/text_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "ground/draw/folded_text.h"

namespace systole {
namespace {

std::size_t widest(const std::string& text) {
  std::istringstream lines(text);
  std::size_t most = 0;
  for (std::string line; std::getline(lines, line);) most = std::max(most, shown_width(line));
  return most;
}

TEST(Table, folds_where_it_is_too_wide) {
  const std::vector<std::string> headers{"#>", "option", "step>", "why"};
  const std::vector<std::vector<std::string>> rows{
      {"1", "a3-highgpu-8g:8", "1.2 s", ""},
      {"2", "v5p:4x4x4", "0.9 s", "it costs more than twice as much as the first one does, which nobody pays"}};
  EXPECT_EQ(table(headers, rows, 60),
            "#  option            step\n"
            "1  a3-highgpu-8g:8  1.2 s\n"
            "2  v5p:4x4x4        0.9 s\n"
            "    why: it costs more than twice as much as the first one\n"
            "      does, which nobody pays\n");
  EXPECT_EQ(widest(table(headers, rows, 200)), 100u);
  for (int width = 21; width < 120; ++width)  // 21: the longest word and its indent
    EXPECT_LE(widest(table(headers, rows, width)), static_cast<std::size_t>(width)) << width;
  EXPECT_EQ(std::ranges::count(table(headers, rows), '\n'), 3)
      << "a row is a line where no terminal says how wide it is";
  EXPECT_EQ(table({"a", "b"}, {{"x", ""}, {"", ""}, {"yyy", "z"}}), "a    b\nx\n\nyyy  z\n")
      << "no line ends in spaces";
  // Many narrow columns: the last ones go below the row.
  EXPECT_EQ(table({"a", "b>", "c>"}, {{"xxxxxxxx", "11111111", "22222222"}}, 20),
            "a                b\nxxxxxxxx  11111111\n    c: 22222222\n");
}

TEST(Folded, breaks_between_words_alone) {
  EXPECT_EQ(folded("one two three\n  four five six\nshort", 10),
            "one two\n    three\n  four\n      five\n      six\nshort");
  EXPECT_EQ(folded("unbreakable_long_word", 5), "unbreakable_long_word\n");
  EXPECT_EQ(folded("", 5), "");
  EXPECT_EQ(folded("    a_long_word of it\n", 8), "    a_long_word\n        of\n        it\n")
      << "an indent is no word";
  EXPECT_EQ(folded("a  b   cccccccc\n", 9), "a  b\n   cccccccc\n") << "no line ends in spaces, nor begins with them";
  EXPECT_EQ(folded("--key  what it is and does\n", 16), "--key  what it\n       is and\n       does\n");
}

// A broken command could not be copied as one line.
TEST(Folded, errors_keep_what_is_typed_and_the_source_that_they_show) {
  EXPECT_EQ(folded_error("job.yaml:3:1: error: nothing that is offered will do; the nearest is h100\n"
                         "  3 | a line of source that is rather long\n"
                         "    | ^\n"
                         "  hint: systole plan job.yaml --on v5p --set train.batch=512",
                         40),
            "job.yaml:3:1: error: nothing that is\n"
            "    offered will do; the nearest is h100\n"
            "  3 | a line of source that is rather long\n"
            "    | ^\n"
            "  hint: systole plan job.yaml --on v5p --set train.batch=512");
  EXPECT_EQ(folded_error("error: short", 40), "error: short");
}

}  // namespace
}  // namespace systole
