#include "execute/serve/answer_text.h"

#include <gtest/gtest.h>

#include "execute/serve/testing/tiny_tokenizer.h"
#include "ground/base/utf8.h"

namespace systole {
namespace {

struct Sent {
  std::string text;
  bool stopped = false;
};
Sent send(std::string_view text, std::vector<std::string> stop) {
  AnswerText answer(tiny_tokenizer(), std::move(stop));
  Sent sent;
  for (const std::int32_t token : tiny_tokens(text)) {
    const std::string piece = answer.add(token);
    EXPECT_FALSE(find_invalid_utf8(piece)) << "every piece is whole characters";
    sent.text += piece;
    if (answer.stopped()) break;
  }
  sent.stopped = answer.stopped();
  sent.text += answer.rest();
  return sent;
}

TEST(AnswerText, characters_of_several_tokens_are_sent_whole) {
  const std::string text = "naïve 漢字 and 👩‍🔬, twice 👩‍🔬";
  EXPECT_GT(tiny_tokens("漢").size(), 1U) << "it crosses tokens";
  EXPECT_EQ(send(text, {}).text, text);
}

TEST(AnswerText, a_stop_string_ends_the_text_before_it_wherever_tokens_end) {
  const std::string text = "one two three\n\nfour";
  for (std::size_t begin = 0; begin < text.size(); ++begin) {
    for (std::size_t length = 1; begin + length <= text.size(); ++length) {
      const std::string stop = text.substr(begin, length);
      const Sent sent = send(text, {stop, "never", ""});
      EXPECT_EQ(sent.text, text.substr(0, text.find(stop))) << stop;
      EXPECT_TRUE(sent.stopped) << stop;
    }
  }
}

TEST(AnswerText, what_only_begins_like_a_stop_string_is_sent) {
  EXPECT_EQ(send("aab aab", {"aac"}).text, "aab aab");
  EXPECT_EQ(send("the end of", {"of it"}).text, "the end of") << "held back to the end";
  EXPECT_EQ(send("xx", {std::string(10'000, 'x')}).text, "xx");
}

TEST(AnswerText, the_first_of_several_stop_strings_counts) {
  EXPECT_EQ(send("one two three", {"three", "two"}).text, "one ");
}

TEST(AnswerText, a_stop_string_counts_only_after_the_tokens_that_come_at_least) {
  const std::vector<std::int32_t> tokens = tiny_tokens("one two three two");
  const auto text_with = [&](std::size_t min_tokens) {
    AnswerText answer(tiny_tokenizer(), {"two"}, false, static_cast<std::int64_t>(min_tokens));
    std::string text;
    for (const std::int32_t token : tokens) text += answer.add(token);
    return text + answer.rest();
  };
  EXPECT_EQ(text_with(0), "one ");
  EXPECT_EQ(text_with(tokens.size() - 1), "one two three ") << "the last token completes the second";
  EXPECT_EQ(text_with(tokens.size()), "one two three two");
}

TEST(AnswerText, counts_characters_not_bytes) {
  AnswerText answer(tiny_tokenizer(), {"字 a, and more"});
  for (const std::int32_t token : tiny_tokens("漢字 a")) answer.add(token);
  EXPECT_EQ(answer.characters(), 4) << "those held back, too";
}

TEST(AnswerText, half_a_character_at_the_end_is_replaced) {
  AnswerText answer(tiny_tokenizer(), {});
  const std::vector<std::int32_t> tokens = tiny_tokens("漢");
  std::string text;
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) text += answer.add(tokens[i]);
  EXPECT_EQ(text.find('\xE6'), std::string::npos);
  EXPECT_FALSE(find_invalid_utf8(text + answer.rest()));
}

TEST(AnswerText, special_tokens_are_spelled_where_asked) {
  const SpecialToken eos{"[END]", tiny_tokenizer().eos()};
  AnswerText silent(tiny_tokenizer(), {}), spelled(tiny_tokenizer(), {}, false, 0, {eos}),
      stops(tiny_tokenizer(), {"END"}, false, 0, {eos});
  EXPECT_EQ(silent.add(eos.token), "");
  EXPECT_EQ(spelled.add(eos.token), "[END]");
  EXPECT_EQ(stops.add(eos.token), "[");
  EXPECT_TRUE(stops.stopped());
}

}  // namespace
}  // namespace systole
