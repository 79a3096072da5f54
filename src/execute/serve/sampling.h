#pragma once
// The next token from logits. At temperature 0 the largest, the first of equals. Otherwise softmax(logits /
// temperature), cut to the top_k most likely, then to the fewest of these whose probabilities reach top_p of what top_k
// left, then drawn with the bits that Philox gives for (seed; sequence, index of the token): the draw depends on
// neither batch nor slot. Top-k: Fan et al., arXiv:1805.04833; top-p: Holtzman et al., arXiv:1904.09751.

#include <cstdint>
#include <span>
#include <vector>

#include "ground/base/result.h"

namespace systole {

struct SamplingOptions {
  double temperature = 1;
  std::int64_t top_k = 0;  // 0: all
  double top_p = 1;
  std::uint64_t seed = 0;
  std::vector<std::int32_t> never;  // tokens that are not drawn
};

// Errors: invalid, naming the option and what it may be.
Status check(const SamplingOptions& options);

// Holds its scratch; one thread's.
class Sampler {
 public:
  // REQUIRES: check(options).
  explicit Sampler(SamplingOptions options) : options_(std::move(options)) {}

  // logits f32[vocab]; -inf is never drawn. Errors: invalid when a logit is NaN or +inf, or none may be drawn.
  Result<std::int32_t> sample(std::span<const float> logits, std::uint64_t sequence, std::uint64_t index);

 private:
  struct Candidate {
    double logit;
    std::int32_t token;
  };
  Status collect(std::span<const float> logits);
  void keep_likeliest();

  SamplingOptions options_;
  std::vector<Candidate> candidates_;
  std::vector<double> weights_;
};

}  // namespace systole
