#include "execute/serve/sampling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "ground/base/philox.h"

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
  EXPECT_EQ(draw({0, 2, 1, 2}, {.temperature = 0, .never = {3, -1, 1, 3, 9, 0}}), 2) << "in any order";
}

TEST(Sampling, a_mask_comes_before_everything_else) {
  const std::vector<float> logits{5, 2, 1, 4};
  const auto masked = [&](std::uint64_t mask, const SamplingOptions& options,
                          std::span<const std::int32_t> barred = {}) {
    const std::uint64_t words[] = {mask};
    return *Sampler(options).sample(logits, 0, 0, barred, words);
  };
  EXPECT_EQ(masked(0b0110, {.temperature = 0}), 1);
  EXPECT_EQ(masked(0b0110, {.temperature = 0, .logit_bias = {{0, 100}, {2, 3}}}), 2) << "a bias brings none back";
  EXPECT_EQ(masked(0b0110, {.top_k = 1}), 1) << "of those that are left";
  EXPECT_EQ(masked(0b0110, {.temperature = 0, .never = {1}}), 2);
  EXPECT_EQ(masked(0, {}), Sampler::kNone);
  const std::int32_t barred[] = {1, 2};
  EXPECT_EQ(masked(0b0110, {}, barred), Sampler::kNone);
  const std::vector<float> wide(70, 0.0F);
  const std::uint64_t words[] = {0, 0b100000};
  EXPECT_EQ(*Sampler({}).sample(wide, 0, 0, {}, words), 69);
  EXPECT_EQ(*Sampler({}).sample(wide, 0, 0, {}, std::span(words, 1)), Sampler::kNone)
      << "without a word, without a bit";
  EXPECT_FALSE(Sampler({}).sample(std::vector<float>{std::nanf(""), 1}, 0, 0, {}, std::span(words, 1)).ok());
}

// Within four standard deviations of a binomial.
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
  seen = draws(logits, {.temperature = 0.5}, kDraws);  // temperature 0.5 squares the probabilities
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

TEST(Sampling, min_p_cuts_relative_to_the_likeliest_after_temperature_and_before_top_p) {
  const std::vector<float> logits{0, static_cast<float>(std::log(2.0)), static_cast<float>(std::log(8.0)),
                                  static_cast<float>(std::log(4.0))};
  constexpr int kDraws = 4'000;
  std::map<std::int32_t, int> seen = draws(logits, {.min_p = 0.2}, kDraws);  // 1, 1/2 and 1/4, but not 1/8
  EXPECT_EQ(seen.size(), 3U);
  expect_share(seen[2], kDraws, 8.0 / 14);
  EXPECT_EQ(draws(logits, {.temperature = 2, .min_p = 0.2}, kDraws).size(), 4U);  // the square roots
  EXPECT_EQ(draws(logits, {.min_p = 1}, 100), (std::map<std::int32_t, int>{{2, 100}}));
  // 12/14 reach 0.83 of the three; 12/15 do not of all.
  EXPECT_EQ(draws(logits, {.top_p = 0.83, .min_p = 0.2}, kDraws).size(), 2U);
  EXPECT_EQ(draws(logits, {.top_p = 0.83}, kDraws).size(), 3U);
}

// The likelier of tokens 0 and 1 after penalties.
std::int32_t first(float zero, float one, const SamplingOptions& of, const std::vector<std::int32_t>& prompt,
                   const std::vector<std::int32_t>& answer) {
  SamplingOptions options = of;
  options.temperature = 0;
  Sampler sampler(options, prompt);
  for (const std::int32_t token : answer) sampler.add(token);
  return *sampler.sample(std::vector<float>{zero, one}, 0, 0);
}

TEST(Sampling, frequency_counts_and_presence_does_not) {
  const SamplingOptions both{.presence_penalty = 1, .frequency_penalty = 0.5};  // 3 * 0.5 + 1 = 2.5
  EXPECT_EQ(first(2.51F, 0, both, {}, {0, 0, 0}), 0);
  EXPECT_EQ(first(2.49F, 0, both, {}, {0, 0, 0}), 1);
  EXPECT_EQ(first(0.01F, 0, both, {0, 0}, {5}), 0) << "the prompt does not count";
  EXPECT_EQ(first(-1.49F, 0, {.presence_penalty = -1.5}, {}, {0, 0}), 0) << "a negative one rewards";
  EXPECT_EQ(first(-1.51F, 0, {.presence_penalty = -1.5}, {}, {0, 0}), 1);
}

TEST(Sampling, repetition_divides_above_zero_and_multiplies_below_in_prompt_and_answer) {
  const SamplingOptions twice{.repetition_penalty = 2};
  for (const bool prompted : {true, false}) {
    const std::vector<std::int32_t> prompt(prompted ? 3 : 0, 0), answer(prompted ? 0 : 3, 0);
    EXPECT_EQ(first(2.01F, 1, twice, prompt, answer), 0);
    EXPECT_EQ(first(1.99F, 1, twice, prompt, answer), 1);
    EXPECT_EQ(first(-1, -2.01F, twice, prompt, answer), 0);
    EXPECT_EQ(first(-1, -1.99F, twice, prompt, answer), 1);
  }
}

// (1 + 3) / 2 - 2 * 0.5 - 0.25 = 0.75; any other order gives another number.
TEST(Sampling, bias_then_repetition_then_frequency_and_presence) {
  const SamplingOptions all{
      .presence_penalty = 0.25, .frequency_penalty = 0.5, .repetition_penalty = 2, .logit_bias = {{0, 3}}};
  EXPECT_EQ(first(1, 0.74F, all, {}, {0, 0}), 0);
  EXPECT_EQ(first(1, 0.76F, all, {}, {0, 0}), 1);
}

TEST(Sampling, a_bias_of_a_hundred_bans_or_forces) {
  const std::vector<float> logits{1, 0, -1};
  EXPECT_EQ(draws(logits, {.logit_bias = {{0, -100}}}, 2'000).count(0), 0U);
  EXPECT_EQ(draws(logits, {.logit_bias = {{2, 100}}}, 100), (std::map<std::int32_t, int>{{2, 100}}));
  EXPECT_EQ(draw({-kInf, 0}, {.logit_bias = {{0, 100}}}), 1) << "what the model rules out stays out";
  EXPECT_EQ(draw({0, 0}, {.temperature = 0, .logit_bias = {{0, 100}}, .never = {0}}), 1);
  EXPECT_EQ(draw({0, 1}, {.temperature = 0, .logit_bias = {{7, 100}}}), 1) << "no such token";
}

TEST(Sampling, barred_tokens_are_not_drawn_this_time) {
  Sampler sampler({.temperature = 0});
  const std::vector<float> logits{2, 1, 0};
  EXPECT_EQ(*sampler.sample(logits, 0, 0, std::vector<std::int32_t>{0, -1, 3}), 1);
  EXPECT_EQ(*sampler.sample(logits, 0, 0), 0);
  EXPECT_FALSE(sampler.sample(logits, 0, 0, std::vector<std::int32_t>{0, 1, 2}).ok());
}

// A bias of no token takes the way of options that change logits.
TEST(Sampling, the_likeliest_is_the_same_by_the_short_way_and_by_the_long_one) {
  PhiloxStream random(7);
  int drawn = 0;
  for (int round = 0; round < 300; ++round) {
    std::vector<float> logits;
    std::vector<std::int32_t> barred, never;
    for (std::int32_t i = 0; i < 130; ++i) {
      const auto level = static_cast<int>(random.next_u32() % 9);
      logits.push_back(level == 0 ? -kInf : static_cast<float>(level - 4));
      if (random.next_u32() % 3 == 0) barred.push_back(i);
      if (random.next_u32() % 5 == 0) never.push_back(129 - i);
    }
    const std::uint64_t words[] = {random.next_u32(), random.next_u32(), random.next_u32() % 4};
    const std::span<const std::uint64_t> mask = std::span(words).first(static_cast<std::size_t>(round % 4));
    Sampler shorter({.temperature = 0, .never = never}),
        longer({.temperature = 0, .logit_bias = {{999, 1}}, .never = never});
    const auto got = shorter.sample(logits, 0, 0, barred, mask), want = longer.sample(logits, 0, 0, barred, mask);
    ASSERT_EQ(got.ok(), want.ok()) << round;
    if (!got.ok()) continue;
    EXPECT_EQ(*got, *want) << round;
    drawn += *got != Sampler::kNone ? 1 : 0;
  }
  EXPECT_GT(drawn, 200);
  EXPECT_FALSE(Sampler({.temperature = 0}).sample(std::vector<float>{0, NAN}, 0, 0).ok());
  EXPECT_FALSE(Sampler({.temperature = 0}).sample(std::vector<float>{kInf, 0}, 0, 0).ok());
  EXPECT_FALSE(Sampler({.temperature = 0}).sample(std::vector<float>{-kInf}, 0, 0).ok());
}

TEST(Sampling, options_that_are_off_leave_every_draw_as_it_is) {
  std::vector<float> logits;
  for (int i = 0; i < 1000; ++i) logits.push_back(static_cast<float>(i % 7));
  const std::vector<std::int32_t> prompt{1, 2, 3};
  Sampler plain({.seed = 4}), told({.seed = 4}, prompt);
  for (const std::int32_t token : {6, 6, 13}) told.add(token);
  for (std::uint64_t i = 0; i < 20; ++i) EXPECT_EQ(*plain.sample(logits, 1, i), *told.sample(logits, 1, i));
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
  EXPECT_FALSE(check(SamplingOptions{.min_p = -0.1}).ok());
  EXPECT_FALSE(check(SamplingOptions{.min_p = 1.1}).ok());
  EXPECT_FALSE(check(SamplingOptions{.presence_penalty = 2.5}).ok());
  EXPECT_FALSE(check(SamplingOptions{.frequency_penalty = NAN}).ok());
  EXPECT_FALSE(check(SamplingOptions{.repetition_penalty = 0}).ok());
  EXPECT_FALSE(check(SamplingOptions{.repetition_penalty = INFINITY}).ok());
  EXPECT_FALSE(check(SamplingOptions{.logit_bias = {{1, 101}}}).ok());
  EXPECT_FALSE(check(SamplingOptions{.logit_bias = {{-1, 1}}}).ok());
  EXPECT_TRUE(check(SamplingOptions{.min_p = 1,
                                    .presence_penalty = -2,
                                    .frequency_penalty = 2,
                                    .repetition_penalty = 1.1,
                                    .logit_bias = {{0, -100}, {1, 100}}})
                  .ok());
}

}  // namespace
}  // namespace systole
