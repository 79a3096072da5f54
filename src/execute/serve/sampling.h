#pragma once
// Samples the next token of one sequence from logits, in this order:
//   0. a token that the mask excludes, if there is a mask, gets -inf;
//   1. logit_bias is added; `never` and the tokens barred from this draw get -inf;
//   2. a token of the prompt or the answer: repetition_penalty divides a logit above 0 and multiplies another;
//   3. a token that the answer has count > 0 times: less count * frequency_penalty, less presence_penalty;
//   4. temperature 0 takes the largest, the first among equals; otherwise softmax(logits / temperature),
//   5. cut to the tokens at least min_p times as likely as the likeliest, then to the top_k most likely, then to the
//      fewest of these whose probabilities reach top_p of their total, and a draw from what is left.
// The draw uses Philox bits of (seed; sequence, index of the token), so it depends on neither batch nor slot.
//
// The order is that of vLLM 0.22 (https://docs.vllm.ai/en/v0.22.1/api/vllm/v1/sample/sampler/). Repetition penalty:
// Keskar et al., arXiv:1909.05858, with signs as in transformers' RepetitionPenaltyLogitsProcessor; frequency, presence
// and bias: OpenAI, https://platform.openai.com/docs/api-reference/completions (2026-11); min-p: Nguyen et al.,
// arXiv:2407.01082; top-k: Fan et al., arXiv:1805.04833; top-p: Holtzman et al., arXiv:1904.09751.

#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ground/base/result.h"

namespace systole {

struct SamplingOptions {
  double temperature = 1;
  std::int64_t top_k = 0;  // 0: all
  double top_p = 1;
  double min_p = 0;
  double presence_penalty = 0, frequency_penalty = 0;  // -2 to 2
  double repetition_penalty = 1;                       // 0.01 to 100
  std::map<std::int32_t, double> logit_bias;           // token to -100 ... 100
  std::uint64_t seed = 0;
  std::vector<std::int32_t> never;  // tokens that are never drawn
};

// Errors: invalid, naming the option and its allowed values.
Status check(const SamplingOptions& options);

// Owns its scratch; one thread at a time. Tokens outside the vocabulary are ignored wherever they are named.
class Sampler {
 public:
  // `prompt`: the beginning of the sequence; none for an encoder-decoder, whose sequence is the answer.
  // REQUIRES: check(options).
  explicit Sampler(SamplingOptions options, std::span<const std::int32_t> prompt = {});

  // The answer has this token now. Draws do not do so themselves.
  void add(std::int32_t token);
  static constexpr std::int32_t kNone = -1;
  // logits f32[vocab]; -inf is never drawn, nor is a token of `barred`, nor, if there is a `mask`, a token without its
  // bit (the lowest of a word first). Errors: invalid if a logit is NaN or +inf, or no token may be drawn; with a mask
  // that is no error but kNone.
  Result<std::int32_t> sample(std::span<const float> logits, std::uint64_t sequence, std::uint64_t index,
                              std::span<const std::int32_t> barred = {}, std::span<const std::uint64_t> mask = {});

 private:
  struct Candidate {
    double logit;
    std::int32_t token;
  };
  Status collect(std::span<const float> logits, std::span<const std::int32_t> barred,
                 std::span<const std::uint64_t> mask);
  // The first of the likeliest tokens that may be drawn, where no option changes a logit; kNone if a mask leaves none.
  Result<std::int32_t> likeliest(std::span<const float> logits, std::span<const std::int32_t> barred,
                                 std::span<const std::uint64_t> mask) const;
  void adjust(std::span<const std::int32_t> barred);
  Candidate* find(std::int32_t token);
  void keep_likeliest();

  SamplingOptions options_;
  bool penalizes_;
  std::unordered_map<std::int32_t, std::int64_t> seen_;  // token to its count in the answer; 0: only in the prompt
  std::vector<Candidate> candidates_;                    // of the draw; in token order until they are cut
  std::vector<double> weights_;
};

}  // namespace systole
