#include "execute/serve/logprobs.h"

#include <algorithm>
#include <cmath>

namespace systole {
namespace {

// The `count` largest logits, by insertion: nearly every logit is less than the least of them.
std::vector<TokenLogprob> largest(std::span<const float> logits, std::size_t count) {
  std::vector<TokenLogprob> kept;
  for (std::size_t i = 0; i < logits.size() && count > 0; ++i) {
    const double logit = logits[i];
    if (kept.size() == count && logit <= kept.back().logprob) continue;
    if (kept.size() == count) kept.pop_back();
    const auto place = std::ranges::find_if(kept, [&](const TokenLogprob& k) { return k.logprob < logit; });
    kept.insert(place, {static_cast<std::int32_t>(i), logit});
  }
  return kept;
}

}  // namespace

TokenLogprobs token_logprobs(std::span<const float> logits, std::int32_t token, std::int64_t count) {
  const double most = *std::ranges::max_element(logits);
  double total = 0;
  for (const float logit : logits) total += std::exp(static_cast<double>(logit) - most);
  const double normalizer = most + std::log(total);
  TokenLogprobs result;
  result.chosen = {token, static_cast<double>(logits[static_cast<std::size_t>(token)]) - normalizer};
  result.likeliest = largest(logits, static_cast<std::size_t>(std::max<std::int64_t>(count, 0)));
  for (TokenLogprob& each : result.likeliest) each.logprob -= normalizer;
  return result;
}

}  // namespace systole
