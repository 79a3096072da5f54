#include "execute/serve/eval/log_likelihood.h"

#include <gtest/gtest.h>

#include "execute/serve/eval/testing/tiny_scorer.h"
#include "execute/serve/generate.h"

namespace systole {
namespace {

using Tokens = std::vector<std::int32_t>;

constexpr double kTolerance = 1e-3;  // sums of up to 40 terms of up to 40, in f32 against f64

std::string text_of_words(std::size_t words) {
  std::string text;
  for (std::size_t i = 0; i < words; ++i) text += i % 3 == 0 ? "badoki " : i % 3 == 1 ? "lumen, " : "soé ";
  text.pop_back();
  return text;
}

// Of the whole text's tokens those that the context has not, after at most a context of tokens.
double expected(Engine& engine, const std::string& context, const std::string& text, const Tokens& before) {
  Tokens all = before;
  const Tokens whole = tiny_tokens(context + text), own = tiny_tokens(context);
  all.insert(all.end(), own.begin(), own.end());
  const std::size_t from = all.size();
  all.insert(all.end(), whole.begin() + static_cast<std::ptrdiff_t>(own.size()), whole.end());
  const std::size_t most = kScorerContext + 1, cut = all.size() > most ? all.size() - most : 0;
  return plain_log_likelihood(engine, std::span(all).subspan(cut), from - cut);
}

TEST(LogLikelihood, of_continuations_is_that_of_each_token_in_turn) {
  const TinyScorer scorer(1, true);
  const Tokens before{tiny_tokenizer().bos()};
  LogLikelihood likelihood(*scorer.engine, tiny_tokenizer(), before);
  const std::vector<std::string> texts{" badoki", " lumen soé", "x", " badoki"};
  for (const std::string context : {"badoki", "lumen, soé badoki", ""}) {
    const std::vector<LogLikelihood::Score> scores = likelihood.of_continuations(context, texts).value();
    ASSERT_EQ(scores.size(), texts.size());
    for (std::size_t i = 0; i < texts.size(); ++i) {
      EXPECT_NEAR(scores[i].value, expected(*scorer.engine, context, texts[i], before), kTolerance)
          << context << texts[i];
      EXPECT_FALSE(scores[i].cut);
      EXPECT_EQ(likelihood.of_continuations(context, std::span(texts).subspan(i, 1)).value()[0].value, scores[i].value)
          << "alone it is the same number";
    }
    EXPECT_EQ(scores[0].value, scores[3].value);
    EXPECT_NE(scores[0].value, scores[1].value);
  }
}

TEST(LogLikelihood, white_space_behind_the_context_counts_to_the_text) {
  const TinyScorer scorer;
  LogLikelihood likelihood(*scorer.engine, tiny_tokenizer(), {1});
  const std::vector<std::string> with{" lumen"}, without{"lumen"};
  EXPECT_EQ(likelihood.of_continuations("badoki", with).value()[0].value,
            likelihood.of_continuations("badoki ", without).value()[0].value);
}

TEST(LogLikelihood, a_context_that_is_too_long_loses_its_beginning) {
  const TinyScorer scorer(1, true);
  const Tokens before{tiny_tokenizer().bos()};
  LogLikelihood likelihood(*scorer.engine, tiny_tokenizer(), before);
  const std::string context = text_of_words(30);
  ASSERT_GT(tiny_tokens(context).size(), static_cast<std::size_t>(kScorerContext));
  const std::vector<std::string> texts{" badoki", " lumen soé"};
  const std::vector<LogLikelihood::Score> scores = likelihood.of_continuations(context, texts).value();
  for (std::size_t i = 0; i < texts.size(); ++i) {
    EXPECT_TRUE(scores[i].cut);
    EXPECT_NEAR(scores[i].value, expected(*scorer.engine, context, texts[i], before), kTolerance);
  }
}

// Windows as get_rolling_token_windows and make_disjoint_window of lm_eval/utils.py have them, with one token of context.
double expected_of_text(Engine& engine, const Tokens& tokens, std::int32_t prefix) {
  const auto most = static_cast<std::size_t>(kScorerContext);
  const auto at = [&](std::size_t i) { return i == 0 ? prefix : tokens[i - 1]; };
  double sum = 0;
  for (std::size_t predicted = 0; predicted < tokens.size();) {
    const std::size_t count = std::min(most, tokens.size() - predicted), end = predicted + count;
    Tokens window;  // its inputs and what they predict
    for (std::size_t i = predicted == 0 ? 0 : end - most; i <= end; ++i) window.push_back(at(i));
    sum += plain_log_likelihood(engine, window, window.size() - count);
    predicted = end;
  }
  return sum;
}

TEST(LogLikelihood, of_a_text_is_that_of_windows_that_do_not_overlap) {
  const TinyScorer scorer(1, true);
  for (const std::vector<std::int32_t>& before : {Tokens{}, Tokens{tiny_tokenizer().bos()}}) {
    LogLikelihood likelihood(*scorer.engine, tiny_tokenizer(), before);
    for (const std::size_t words : {1, 4, 8, 9, 60}) {
      const std::string text = text_of_words(words);
      const Tokens tokens = tiny_tokens(text);
      const LogLikelihood::Score score = likelihood.of_text(text).value();
      EXPECT_EQ(score.tokens, static_cast<std::int64_t>(tokens.size()));
      EXPECT_NEAR(score.value, expected_of_text(*scorer.engine, tokens, tiny_tokenizer().bos()), kTolerance) << words;
    }
  }
  EXPECT_GT(tiny_tokens(text_of_words(60)).size(), static_cast<std::size_t>(2 * kScorerContext)) << "three windows";
}

TEST(LogLikelihood, is_the_same_after_answers_of_other_slots) {
  const TinyScorer scorer(3, true);
  LogLikelihood likelihood(*scorer.engine, tiny_tokenizer(), {});
  const double first = likelihood.of_text(text_of_words(9)).value().value;
  GenerateOptions options;
  options.max_tokens = 6;
  const std::vector<Tokens> prompts{{1, 2, 3}, {4, 5}, {6}, {7, 8, 9, 10}};
  ASSERT_TRUE(generate(*scorer.engine, prompts, options).ok());
  EXPECT_EQ(likelihood.of_text(text_of_words(9)).value().value, first);
}

TEST(LogLikelihood, refuses_texts_that_do_not_fit_and_weights_that_are_not_finite) {
  const TinyScorer scorer;
  LogLikelihood likelihood(*scorer.engine, tiny_tokenizer(), {});
  for (const std::string& text : {std::string(), text_of_words(30)}) {
    const auto wrong = likelihood.of_continuations("badoki", std::vector<std::string>{text});
    ASSERT_FALSE(wrong.ok());
    EXPECT_NE(wrong.error().message.find("and 1 to 24 can be scored"), std::string::npos) << wrong.error().message;
  }
  spoil_weights(*scorer.model, *scorer.engine);
  const auto spoiled = likelihood.of_text("badoki");
  ASSERT_FALSE(spoiled.ok());
  EXPECT_EQ(spoiled.error().hint, "the weights are damaged");
}

}  // namespace
}  // namespace systole
