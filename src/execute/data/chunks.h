#pragma once
// Splits a text into chunks for SentencePiece (tokenizer.h explains why).

#include <cstddef>
#include <string_view>

namespace systole {

struct TextChunk {
  std::size_t length = 0;  // bytes, at most 128; 0 at the end of the text
  bool plain = true;       // true: for SentencePiece; false: each byte becomes a token
};

// The chunk that `text` starts with.
TextChunk first_chunk(std::string_view text);

}  // namespace systole
