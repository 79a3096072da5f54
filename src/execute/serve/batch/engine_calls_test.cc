#include "execute/serve/batch/engine_calls.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

TEST(EngineCalls, prompts_are_computed_in_the_longest_pieces_and_a_last_one) {
  const EngineOptions options{.slots = 1, .cache = 256, .buckets = {16, 64}, .batches = {1}};
  const std::vector<SequenceSize> sequences{{130, 3}, {64, 1}, {5, 2}};
  EXPECT_EQ(generation_calls(options, sequences),
            (EngineCalls{{prefill_name(16), 2}, {prefill_name(64), 3}, {decode_name(1), 3}}));
  EXPECT_EQ(score_calls(options, sequences), (EngineCalls{{score_name(16), 2}, {score_name(64), 3}}));
}

TEST(EngineCalls, more_sequences_than_slots_wait_and_a_decode_is_padded) {
  const EngineOptions options{.slots = 3, .cache = 64, .buckets = {16}, .batches = {1, 2, 4}};
  // Three decode for two steps; the fourth begins in step 3, alone.
  EXPECT_EQ(generation_calls(options, std::vector<SequenceSize>(4, {4, 3})),
            (EngineCalls{{prefill_name(16), 4}, {decode_name(4), 2}, {decode_name(1), 2}}));
}

TEST(EngineCalls, texts_of_one_length_are_computed_together) {
  const EngineOptions options{.cache = 64, .texts = {16, 64}};
  std::vector<SequenceSize> texts(33, {5, 0});
  texts.push_back({17, 0});
  EXPECT_EQ(hidden_calls(options, texts), (EngineCalls{{hidden_name(16), 2}, {hidden_name(64), 1}}));
}

}  // namespace
}  // namespace systole
