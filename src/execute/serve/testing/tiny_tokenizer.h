#pragma once
// A tokenizer of 400 tokens, trained on made-up words.

#include <string_view>
#include <vector>

#include "execute/data/testing/made_up_text.h"
#include "execute/data/tokenizer.h"

namespace systole {

inline const Tokenizer& tiny_tokenizer() {
  static const Tokenizer made = Tokenizer::train({.vocabulary = 400}, made_up_documents(500)).value();
  return made;
}

inline std::vector<std::int32_t> tiny_tokens(std::string_view text) {
  std::vector<std::int32_t> tokens;
  Encoder(tiny_tokenizer()).encode(text, tokens);
  return tokens;
}

}  // namespace systole
