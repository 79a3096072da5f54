#include "execute/data/chunks.h"

#include "execute/data/utf8.h"

namespace systole {
namespace {

constexpr std::size_t kLargestChunk = 128;               // bytes
constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581, SentencePiece's mark for a space

// The length of the plain character at the start of `text`; 0 if SentencePiece cannot process it.
std::size_t plain_step(std::string_view text) {
  const auto byte = static_cast<unsigned char>(text[0]);
  if (byte < 0x80) return byte == '\n' || byte == '\0' ? 0 : 1;
  const Utf8Step step = utf8_step(text);
  return !step.valid || text.starts_with(kSpaceMark) ? 0 : step.length;
}

}  // namespace

TextChunk first_chunk(std::string_view text) {
  if (text.empty()) return {};
  std::size_t length = plain_step(text);
  if (length == 0) {
    const std::size_t bytes = text[0] == '\n' || text[0] == '\0' ? 1 : utf8_step(text).length;
    return {bytes, false};
  }
  while (length < text.size() && text[length] != ' ') {
    const std::size_t step = plain_step(text.substr(length));
    if (step == 0 || length + step > kLargestChunk) break;
    length += step;
  }
  return {length, true};
}

}  // namespace systole
