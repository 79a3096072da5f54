#include "execute/data/utf8.h"

#include <gtest/gtest.h>

#include "execute/data/chunks.h"

namespace systole {
namespace {

TEST(Utf8, WellFormedTextIsValidToItsEnd) {
  for (const std::string_view text : {"", "plain ascii, longer than eight bytes", "\xC3\xA9t\xC3\xA9", "\xE2\x82\xAC",
                                      "\xF0\x9F\x98\x80 and so on", "\xED\x9F\xBF", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_EQ(valid_utf8_prefix(text), text.size()) << text;
  }
}

TEST(Utf8, IllFormedTextStopsWhereItBegins) {
  const std::string_view bad[] = {"\xFF",         "\x80",         "\xC0\xAF",         "\xC1\xBF",
                                  "\xE0\x80\x80", "\xED\xA0\x80", "\xF0\x80\x80\x80", "\xF4\x90\x80\x80",
                                  "\xF5\x80",     "\xE2\x82",     "\xF0\x9F\x98"};
  for (const std::string_view part : bad) {
    const std::string text = "0123456789 \xC3\xA9" + std::string(part);
    EXPECT_EQ(valid_utf8_prefix(text), 13u) << testing::PrintToString(part);
  }
}

TEST(Utf8, ReplacesEachMaximalPartOnce) {
  // The example of the Unicode standard, table 3-8 (version 15).
  std::string text = "\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64";
  EXPECT_EQ(replace_invalid_utf8(text), 6u);
  const std::string r = "\xEF\xBF\xBD";
  EXPECT_EQ(text, "a" + r + r + r + "b" + r + "c" + r + r + "d");
}

std::vector<std::string> chunks_of(std::string_view text) {
  std::vector<std::string> chunks;
  for (Chunk chunk = first_chunk(text); chunk.length > 0; chunk = first_chunk(text)) {
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
