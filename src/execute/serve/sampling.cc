#include "execute/serve/sampling.h"

#include <algorithm>
#include <cmath>

#include "ground/base/philox.h"

namespace systole {
namespace {

Status check_range(const char* name, double value, double lowest, double highest, const char* hint) {
  if (value >= lowest && value <= highest) return {};
  return error(ErrorKind::invalid, "{} is {}, must be between {} and {}", name, value, lowest, highest).hinted(hint);
}

bool is_masked(std::span<const std::uint64_t> mask, std::size_t token) {
  return !mask.empty() && (token / 64 >= mask.size() || (mask[token / 64] >> (token % 64) & 1) == 0);
}

Error damaged(std::size_t token, double logit) {
  return error(ErrorKind::invalid, "the logit of token {} is {}", token, logit)
      .hinted("the model's weights are damaged or have diverged");
}

Error nothing_to_draw() { return error(ErrorKind::invalid, "no token may be drawn"); }

}  // namespace

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
  TRY(check_range("min_p", options.min_p, 0, 1, "0 keeps all tokens"));
  TRY(check_range("presence_penalty", options.presence_penalty, -2, 2, "0 changes nothing"));
  TRY(check_range("frequency_penalty", options.frequency_penalty, -2, 2, "0 changes nothing"));
  TRY(check_range("repetition_penalty", options.repetition_penalty, 0.01, 100, "1 changes nothing"));
  for (const auto& [token, bias] : options.logit_bias) {
    if (token < 0) return error(ErrorKind::invalid, "logit_bias: {} is no token", token);
    TRY(check_range("logit_bias", bias, -100, 100, "-100 bans a token, 100 forces it"));
  }
  return {};
}

Sampler::Sampler(SamplingOptions options, std::span<const std::int32_t> prompt)
    : options_(std::move(options)),
      penalizes_(options_.presence_penalty != 0 || options_.frequency_penalty != 0 ||
                 options_.repetition_penalty != 1) {
  if (options_.repetition_penalty == 1) return;
  for (const std::int32_t token : prompt) seen_.try_emplace(token, 0);
}

void Sampler::add(std::int32_t token) {
  if (penalizes_) ++seen_[token];
}

Sampler::Candidate* Sampler::find(std::int32_t token) {
  const auto found = std::ranges::lower_bound(candidates_, token, {}, &Candidate::token);
  return found != candidates_.end() && found->token == token ? &*found : nullptr;
}

// O(log vocabulary) for each token that an option names or the sequence has.
void Sampler::adjust(std::span<const std::int32_t> barred) {
  for (const auto& [token, bias] : options_.logit_bias) {
    if (Candidate* c = find(token)) c->logit += bias;
  }
  for (const auto& [token, count] : seen_) {
    Candidate* c = find(token);
    if (c == nullptr) continue;
    c->logit = c->logit > 0 ? c->logit / options_.repetition_penalty : c->logit * options_.repetition_penalty;
    c->logit -= static_cast<double>(count) * options_.frequency_penalty;
    if (count > 0) c->logit -= options_.presence_penalty;
  }
  bool removes = false;
  for (const std::span<const std::int32_t> tokens : {std::span<const std::int32_t>(options_.never), barred}) {
    for (const std::int32_t token : tokens) {
      Candidate* c = find(token);
      if (c == nullptr) continue;
      c->logit = -INFINITY;
      removes = true;
    }
  }
  if (removes) std::erase_if(candidates_, [](const Candidate& c) { return c.logit == -INFINITY; });
}

Status Sampler::collect(std::span<const float> logits, std::span<const std::int32_t> barred,
                        std::span<const std::uint64_t> mask) {
  candidates_.clear();
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double logit = logits[i];
    if (std::isnan(logit) || logit == INFINITY) return damaged(i, logit);
    if (logit != -INFINITY && !is_masked(mask, i)) candidates_.push_back({logit, static_cast<std::int32_t>(i)});
  }
  adjust(barred);
  if (candidates_.empty() && mask.empty()) return nothing_to_draw();
  return {};
}

// One pass without a list of candidates: a token is looked up only where it exceeds all before it.
Result<std::int32_t> Sampler::likeliest(std::span<const float> logits, std::span<const std::int32_t> barred,
                                        std::span<const std::uint64_t> mask) const {
  const auto may_be_drawn = [&](std::size_t token) {
    const auto id = static_cast<std::int32_t>(token);
    return !is_masked(mask, token) && std::ranges::find(barred, id) == barred.end() &&
           std::ranges::find(options_.never, id) == options_.never.end();
  };
  std::int32_t token = kNone;
  float most = -INFINITY;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const float logit = logits[i];
    if (!(logit < INFINITY)) return damaged(i, logit);
    if (logit > most && may_be_drawn(i)) {
      most = logit;
      token = static_cast<std::int32_t>(i);
    }
  }
  if (token == kNone && mask.empty()) return nothing_to_draw();
  return token;
}

// Cuts candidates_ to min_p, top_k and top_p, sorted by likelihood if one of the latter cuts; fills weights_.
void Sampler::keep_likeliest() {
  const auto likelier = [](const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
  };
  if (options_.min_p > 0) {
    // exp((logit - most) / temperature) < min_p, without an exponential for each token.
    const double least =
        std::ranges::max(candidates_, {}, &Candidate::logit).logit + options_.temperature * std::log(options_.min_p);
    std::erase_if(candidates_, [&](const Candidate& c) { return c.logit < least; });
  }
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

Result<std::int32_t> Sampler::sample(std::span<const float> logits, std::uint64_t sequence, std::uint64_t index,
                                     std::span<const std::int32_t> barred, std::span<const std::uint64_t> mask) {
  if (options_.temperature == 0 && !penalizes_ && options_.logit_bias.empty()) return likeliest(logits, barred, mask);
  TRY(collect(logits, barred, mask));
  if (candidates_.empty()) return kNone;
  if (options_.temperature == 0) {
    const auto best = std::max_element(candidates_.begin(), candidates_.end(),
                                       [](const Candidate& a, const Candidate& b) { return a.logit < b.logit; });
    return best->token;  // the first among equals: candidates are in token order
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
  return candidates_.back().token;  // rounding may leave a rest
}

}  // namespace systole
