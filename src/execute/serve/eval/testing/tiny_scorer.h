#pragma once
// A tiny decoder with a tokenizer, for evaluations.

#include "execute/data/tokenizer.h"
#include "execute/serve/logprobs.h"
#include "execute/serve/testing/tiny_engine.h"
#include "execute/serve/testing/tiny_tokenizer.h"

namespace systole {

inline constexpr std::int64_t kScorerContext = 24;

struct TinyScorer {
  std::unique_ptr<const Model> model = make_decoder(tiny_decoder(400, kScorerContext));
  std::unique_ptr<Device> device = make_reference_device();
  std::unique_ptr<Engine> engine;

  explicit TinyScorer(std::int64_t slots = 1, bool generates = false)
      : engine(sharp_engine(*model, *device, {.slots = slots, .score = true, .generates = generates})) {}
};

// The log likelihood of tokens[from...] after those before them, by the logits of a prefill for each.
inline double plain_log_likelihood(Engine& engine, std::span<const std::int32_t> tokens, std::size_t from) {
  double sum = 0;
  for (std::size_t i = from; i < tokens.size(); ++i) {
    engine.prefill(0, tokens.first(i)).value();
    sum += token_logprobs(engine.logits(0), tokens[i], 0).chosen.logprob;
  }
  return sum;
}

}  // namespace systole
