#include "execute/serve/sampling.h"

#include <algorithm>
#include <cmath>

#include "ground/base/philox.h"

namespace systole {

Status check(const SamplingOptions& options) {
  if (!(options.temperature >= 0 && std::isfinite(options.temperature))) {
    return error(ErrorKind::invalid, "temperature is {}, must not be negative", options.temperature)
        .hinted("0 takes the likeliest token, 1 samples as the model predicts");
  }
  if (options.top_k < 0)
    return error(ErrorKind::invalid, "top_k is {}, must not be negative", options.top_k).hinted("0 keeps all tokens");
  if (!(options.top_p > 0 && options.top_p <= 1)) {
    return error(ErrorKind::invalid, "top_p is {}, must be above 0 and at most 1", options.top_p)
        .hinted("1 keeps all tokens");
  }
  return {};
}

Status Sampler::collect(std::span<const float> logits) {
  candidates_.clear();
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double logit = logits[i];
    if (std::isnan(logit) || logit == INFINITY) {
      return error(ErrorKind::invalid, "the logit of token {} is {}", i, logit)
          .hinted("the model's weights are damaged or have diverged");
    }
    if (logit != -INFINITY) candidates_.push_back({logit, static_cast<std::int32_t>(i)});
  }
  for (const std::int32_t token : options_.never) {
    std::erase_if(candidates_, [&](const Candidate& c) { return c.token == token; });
  }
  if (candidates_.empty()) return error(ErrorKind::invalid, "no token may be drawn");
  return {};
}

// Cuts candidates_ to top_k and top_p, in order of likelihood where either asks for it; fills weights_.
void Sampler::keep_likeliest() {
  const auto likelier = [](const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
  };
  const auto count =
      std::min(candidates_.size(), options_.top_k > 0 ? static_cast<std::size_t>(options_.top_k) : candidates_.size());
  double most = 0;
  if (count < candidates_.size() || options_.top_p < 1) {
    std::partial_sort(candidates_.begin(), candidates_.begin() + static_cast<std::ptrdiff_t>(count), candidates_.end(),
                      likelier);
    candidates_.resize(count);
    most = candidates_.front().logit;
  } else {
    most = std::min_element(candidates_.begin(), candidates_.end(), likelier)->logit;
  }
  weights_.clear();
  double total = 0;
  for (const Candidate& c : candidates_)
    total += weights_.emplace_back(std::exp((c.logit - most) / options_.temperature));
  if (options_.top_p == 1) return;
  double reached = 0;
  std::size_t kept = 0;
  while (kept < weights_.size() && reached < options_.top_p * total) reached += weights_[kept++];
  weights_.resize(kept);
  candidates_.resize(kept);
}

Result<std::int32_t> Sampler::sample(std::span<const float> logits, std::uint64_t sequence, std::uint64_t index) {
  TRY(collect(logits));
  if (options_.temperature == 0) {
    const auto best = std::max_element(candidates_.begin(), candidates_.end(),
                                       [](const Candidate& a, const Candidate& b) { return a.logit < b.logit; });
    return best->token;  // the first of equals: tokens are in order
  }
  keep_likeliest();
  double total = 0;
  for (const double weight : weights_) total += weight;
  const PhiloxBlock bits = philox(options_.seed, philox_counter(index, sequence));
  double left = uniform_f64(bits[0], bits[1]) * total;
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    left -= weights_[i];
    if (left < 0) return candidates_[i].token;
  }
  return candidates_.back().token;  // rounding took the last sliver
}

}  // namespace systole
