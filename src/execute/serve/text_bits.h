#pragma once
// How well a model predicts a text: the bits of its tokens by the model's probabilities, for each byte that they spell.
//
//   const TextBits bits = TRY(bits_of(engine, tokenizer, tokens));   // bits.per_byte(): 0.9

#include <cstdint>
#include <span>

#include "execute/data/tokenizer.h"
#include "execute/serve/engine.h"

namespace systole {

struct TextBits {
  double bits = 0;
  std::int64_t tokens = 0, bytes = 0;  // that were predicted, and that these spell
  double per_byte() const { return bits / static_cast<double>(bytes); }
};

// Of all tokens but the first, in slot 0. Errors: invalid: they spell nothing, or are more than a slot holds; a logit is
// not finite; those of the engine. REQUIRES: the engine was created with `score`.
Result<TextBits> bits_of(Engine& engine, const Tokenizer& tokenizer, std::span<const std::int32_t> tokens);

}  // namespace systole
