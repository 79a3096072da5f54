#pragma once
// How a text is cut before SentencePiece sees it (tokenizer.h says why).

#include <cstddef>
#include <string_view>

namespace systole {

constexpr std::size_t kLargestChunk = 128;  // bytes

struct TextChunk {
  std::size_t length = 0;  // bytes; 0 at the end of the text
  bool plain = true;       // SentencePiece may have it; otherwise each byte is a token
};

// The chunk that `text` starts with.
TextChunk first_chunk(std::string_view text);

}  // namespace systole
