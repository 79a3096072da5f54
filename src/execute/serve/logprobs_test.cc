#include "execute/serve/logprobs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace systole {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

std::vector<float> logs(const std::vector<double>& weights, double shift = 0) {
  std::vector<float> logits;
  for (const double weight : weights) logits.push_back(static_cast<float>(std::log(weight) + shift));
  return logits;
}

std::vector<std::int32_t> tokens_of(const TokenLogprobs& logprobs) {
  std::vector<std::int32_t> tokens;
  for (const TokenLogprob& each : logprobs.likeliest) tokens.push_back(each.token);
  return tokens;
}

TEST(Logprobs, are_the_log_softmax_of_the_logits) {
  // Shifted logits keep the probabilities 1/8, 2/8, 5/8; f32 logits near 1000 keep four digits.
  for (const auto& [shift, tolerance] : {std::pair{0.0, 1e-6}, std::pair{1000.0, 1e-4}, std::pair{-1000.0, 1e-4}}) {
    const TokenLogprobs logprobs = token_logprobs(logs({1, 2, 5}, shift), 0, 2);
    EXPECT_EQ(logprobs.chosen.token, 0);
    EXPECT_NEAR(logprobs.chosen.logprob, std::log(1.0 / 8), tolerance);
    ASSERT_EQ(tokens_of(logprobs), (std::vector<std::int32_t>{2, 1}));
    EXPECT_NEAR(logprobs.likeliest[0].logprob, std::log(5.0 / 8), tolerance);
    EXPECT_NEAR(logprobs.likeliest[1].logprob, std::log(2.0 / 8), tolerance);
  }
}

TEST(Logprobs, the_likeliest_are_in_order_and_as_many_as_there_are) {
  const std::vector<float> logits = logs({3, 7, 1, 7, 2});
  EXPECT_EQ(tokens_of(token_logprobs(logits, 2, 0)), std::vector<std::int32_t>{});
  EXPECT_EQ(tokens_of(token_logprobs(logits, 2, 1)), std::vector<std::int32_t>{1});
  EXPECT_EQ(tokens_of(token_logprobs(logits, 2, 3)), (std::vector<std::int32_t>{1, 3, 0}));
  const TokenLogprobs all = token_logprobs(logits, 2, 9);
  EXPECT_EQ(tokens_of(all), (std::vector<std::int32_t>{1, 3, 0, 4, 2}));
  EXPECT_EQ(all.chosen, all.likeliest.back());
}

TEST(Logprobs, a_token_that_the_model_rules_out_has_minus_infinity) {
  const TokenLogprobs logprobs = token_logprobs(std::vector<float>{-kInf, 3}, 1, 2);
  EXPECT_EQ(logprobs.chosen, (TokenLogprob{1, 0.0}));
  EXPECT_EQ(logprobs.likeliest.at(1), (TokenLogprob{0, -std::numeric_limits<double>::infinity()}));
}

}  // namespace
}  // namespace systole
