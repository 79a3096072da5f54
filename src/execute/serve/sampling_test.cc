#include "execute/serve/sampling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

namespace systole {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

std::int32_t draw(const std::vector<float>& logits, const SamplingOptions& options, std::uint64_t index = 0,
                  std::uint64_t sequence = 0) {
  return *Sampler(options).sample(logits, sequence, index);
}

std::map<std::int32_t, int> draws(const std::vector<float>& logits, const SamplingOptions& options, int count) {
  Sampler sampler(options);
  std::map<std::int32_t, int> seen;
  for (int i = 0; i < count; ++i) ++seen[*sampler.sample(logits, 3, static_cast<std::uint64_t>(i))];
  return seen;
}

TEST(Sampling, temperature_zero_takes_the_first_of_the_largest) {
  EXPECT_EQ(draw({0, 2, 1, 2}, {.temperature = 0}), 1);
  EXPECT_EQ(draw({0, 2, 1, 2}, {.temperature = 0, .never = {1, 3}}), 2);
}

// Four standard deviations of a binomial.
void expect_share(int count, int total, double probability) {
  EXPECT_NEAR(count, total * probability, 4 * std::sqrt(total * probability * (1 - probability)));
}

TEST(Sampling, draws_as_often_as_the_softmax_says) {
  const std::vector<float> logits{0, static_cast<float>(std::log(2.0)), static_cast<float>(std::log(5.0))};
  constexpr int kDraws = 20'000;
  std::map<std::int32_t, int> seen = draws(logits, {}, kDraws);
  expect_share(seen[0], kDraws, 1.0 / 8);
  expect_share(seen[1], kDraws, 2.0 / 8);
  expect_share(seen[2], kDraws, 5.0 / 8);
  seen = draws(logits, {.temperature = 0.5}, kDraws);  // squares
  expect_share(seen[0], kDraws, 1.0 / 30);
  expect_share(seen[2], kDraws, 25.0 / 30);
}

TEST(Sampling, top_k_and_top_p_cut_the_tail) {
  const std::vector<float> logits{static_cast<float>(std::log(3.0)), static_cast<float>(std::log(4.0)), 0,
                                  static_cast<float>(std::log(2.0))};
  constexpr int kDraws = 4'000;
  std::map<std::int32_t, int> seen = draws(logits, {.top_k = 2}, kDraws);
  EXPECT_EQ(seen.size(), 2U);
  expect_share(seen[1], kDraws, 4.0 / 7);
  EXPECT_EQ(draws(logits, {.top_p = 0.7}, kDraws).size(), 2U);  // 0.4 + 0.3 reach it
  EXPECT_EQ(draws(logits, {.top_p = 0.75}, kDraws).size(), 3U);
  EXPECT_EQ(draws(logits, {.top_p = 1e-9}, 100), (std::map<std::int32_t, int>{{1, 100}}));
  // Of the three that top_k leaves, 4/9 + 3/9 reach 0.75.
  EXPECT_EQ(draws(logits, {.top_k = 3, .top_p = 0.75}, kDraws).size(), 2U);
}

TEST(Sampling, the_draw_is_a_function_of_seed_sequence_and_index) {
  const std::vector<float> logits(1000, 0.0F);
  const std::int32_t one = draw(logits, {.seed = 1}, 5, 2);
  EXPECT_EQ(one, draw(logits, {.seed = 1}, 5, 2));
  EXPECT_NE(one, draw(logits, {.seed = 2}, 5, 2));
  EXPECT_NE(one, draw(logits, {.seed = 1}, 6, 2));
  EXPECT_NE(one, draw(logits, {.seed = 1}, 5, 3));
}

TEST(Sampling, infinities_and_nan) {
  EXPECT_EQ(draw({-kInf, 0, -kInf}, {}), 1);
  EXPECT_FALSE(Sampler({}).sample(std::vector<float>{0, NAN}, 0, 0).ok());
  EXPECT_FALSE(Sampler({}).sample(std::vector<float>{0, kInf}, 0, 0).ok());
  EXPECT_FALSE(Sampler({}).sample(std::vector<float>{-kInf}, 0, 0).ok());
  EXPECT_FALSE(Sampler({.never = {0}}).sample(std::vector<float>{1}, 0, 0).ok());
}

TEST(Sampling, options_are_checked) {
  EXPECT_TRUE(check(SamplingOptions{}).ok());
  EXPECT_FALSE(check(SamplingOptions{.temperature = -1}).ok());
  EXPECT_FALSE(check(SamplingOptions{.temperature = NAN}).ok());
  EXPECT_FALSE(check(SamplingOptions{.top_k = -1}).ok());
  EXPECT_FALSE(check(SamplingOptions{.top_p = 0}).ok());
  EXPECT_FALSE(check(SamplingOptions{.top_p = 1.5}).ok());
}

}  // namespace
}  // namespace systole
