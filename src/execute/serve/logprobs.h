#pragma once
// The log probabilities of a drawn token and of the likeliest: the log-softmax of the logits as the model gives them,
// before anything that sampling.h does to them (vLLM's raw_logprobs).

#include <cstdint>
#include <span>
#include <vector>

namespace systole {

struct TokenLogprob {
  std::int32_t token = 0;
  double logprob = 0;  // natural; -inf: the model rules the token out
  bool operator==(const TokenLogprob&) const = default;
};

struct TokenLogprobs {
  TokenLogprob chosen;
  std::vector<TokenLogprob> likeliest;  // descending, the lower token first among equals
  bool operator==(const TokenLogprobs&) const = default;
};

// logits f32[vocab]. `count`: how many of the likeliest; all, if it is more. O(vocab) for few.
// REQUIRES: token in the vocabulary; no logit is NaN or +inf, and not all are -inf.
TokenLogprobs token_logprobs(std::span<const float> logits, std::int32_t token, std::int64_t count);

}  // namespace systole
