#include "execute/data/utf8.h"

#include <gtest/gtest.h>

#include "execute/data/chunks.h"
#include "ground/base/utf8.h"

namespace systole {
namespace {

TEST(Utf8, WellFormedTextIsValidToItsEnd) {
  for (const std::string_view text : {"", "plain ascii, longer than eight bytes", "\xC3\xA9t\xC3\xA9", "\xE2\x82\xAC",
                                      "\xF0\x9F\x98\x80 and so on", "\xED\x9F\xBF", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_EQ(find_invalid_utf8(text), std::nullopt) << text;
  }
}

TEST(Utf8, IllFormedTextStopsWhereItBegins) {
  const std::string_view bad[] = {"\xFF",         "\x80",         "\xC0\xAF",         "\xC1\xBF",
                                  "\xE0\x80\x80", "\xED\xA0\x80", "\xF0\x80\x80\x80", "\xF4\x90\x80\x80",
                                  "\xF5\x80",     "\xE2\x82",     "\xF0\x9F\x98"};
  for (const std::string_view part : bad) {
    const std::string text = "0123456789 \xC3\xA9" + std::string(part);
    EXPECT_EQ(find_invalid_utf8(text), 13u) << testing::PrintToString(part);
  }
}

TEST(Utf8, ReplacesEachMaximalPartOnce) {
  // The example of the Unicode standard, table 3-8 (version 15).
  std::string text = "\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64";
  EXPECT_EQ(replace_ill_formed_parts(text), 6u);
  const std::string r = "\xEF\xBF\xBD";
  EXPECT_EQ(text, "a" + r + r + r + "b" + r + "c" + r + r + "d");
}

// All texts of four bytes at which the rules change, against table 3-7 of the standard.
TEST(Utf8, PartsAreMaximal) {
  const unsigned char edges[] = {0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC1, 0xC2, 0xDF,
                                 0xE0, 0xE1, 0xEC, 0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5};
  const auto between = [](unsigned char c, int low, int high) { return c >= low && c <= high; };
  for (const unsigned char a : edges) {
    for (const unsigned char b : edges) {
      for (const unsigned char c : edges) {
        for (const unsigned char d : edges) {
          const int wanted = a < 0x80                 ? 1
                             : between(a, 0xC2, 0xDF) ? 2
                             : between(a, 0xE0, 0xEF) ? 3
                             : between(a, 0xF0, 0xF4) ? 4
                                                      : 0;
          const bool second = between(b,
                                      a == 0xE0   ? 0xA0
                                      : a == 0xF0 ? 0x90
                                                  : 0x80,
                                      a == 0xED   ? 0x9F
                                      : a == 0xF4 ? 0x8F
                                                  : 0xBF);
          std::size_t length = 1;
          if (wanted >= 2 && second) length = 2;
          if (length == 2 && wanted >= 3 && between(c, 0x80, 0xBF)) length = 3;
          if (length == 3 && wanted == 4 && between(d, 0x80, 0xBF)) length = 4;
          const char text[] = {static_cast<char>(a), static_cast<char>(b), static_cast<char>(c), static_cast<char>(d)};
          const Utf8Step step = utf8_step({text, 4});
          ASSERT_EQ(step.length, length) << testing::PrintToString(std::string(text, 4));
          ASSERT_EQ(step.valid, static_cast<int>(length) == wanted) << testing::PrintToString(std::string(text, 4));
        }
      }
    }
  }
}

std::vector<std::string> chunks_of(std::string_view text) {
  std::vector<std::string> chunks;
  for (TextChunk chunk = first_chunk(text); chunk.length > 0; chunk = first_chunk(text)) {
    chunks.push_back((chunk.plain ? "" : "!") + std::string(text.substr(0, chunk.length)));
    text.remove_prefix(chunk.length);
  }
  return chunks;
}

TEST(Chunks, EndBeforeSpacesAndAroundWhatSentencePieceCannotTake) {
  EXPECT_EQ(chunks_of("two  words"), (std::vector<std::string>{"two", " ", " words"}));
  EXPECT_EQ(chunks_of("a\nb"), (std::vector<std::string>{"a", "!\n", "b"}));
  EXPECT_EQ(chunks_of("a\xE2\x96\x81"
                      "b\xFF"),
            (std::vector<std::string>{"a", "!\xE2\x96\x81", "b", "!\xFF"}));
  EXPECT_EQ(chunks_of(std::string_view("\0x", 2)), (std::vector<std::string>{std::string("!\0", 2), "x"}));
  EXPECT_EQ(chunks_of(std::string(300, 'x')).size(), 3u);
  std::string accents;
  for (int i = 0; i < 100; ++i) accents += "\xE2\x82\xAC";
  EXPECT_EQ(chunks_of(accents)[0].size(), 126u);  // no character is cut
}

}  // namespace
}  // namespace systole
