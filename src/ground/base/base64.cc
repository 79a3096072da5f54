#include "ground/base/base64.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace systole {
namespace {

constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<std::int8_t, 256> values() {
  std::array<std::int8_t, 256> table{};
  table.fill(-1);
  for (std::size_t i = 0; i < kLetters.size(); ++i)
    table[static_cast<unsigned char>(kLetters[i])] = static_cast<std::int8_t>(i);
  return table;
}

constexpr std::array<std::int8_t, 256> kValues = values();

}  // namespace

std::string to_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t here = std::min<std::size_t>(3, bytes.size() - at);
    std::uint32_t three = 0;
    for (std::size_t i = 0; i < 3; ++i) three = three << 8 | (i < here ? static_cast<unsigned char>(bytes[at + i]) : 0);
    for (std::size_t i = 0; i < 4; ++i) text += i <= here ? kLetters[three >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

Result<std::string> from_base64(std::string_view text) {
  const auto wrong = [](const char* why) { return error(ErrorKind::invalid, "not Base64: {}", why); };
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  std::uint32_t held = 0;
  int letters = 0, pads = 0;
  for (const char c : text) {
    if (c == '\n' || c == '\r' || c == ' ' || c == '\t') continue;
    if (c == '=') {
      ++pads;
      continue;
    }
    const std::int8_t value = kValues[static_cast<unsigned char>(c)];
    if (value < 0) return wrong("a letter that it has not");
    if (pads > 0) return wrong("letters behind its end");
    held = held << 6 | static_cast<std::uint32_t>(value);
    if (++letters % 4 != 0) continue;
    for (const int shift : {16, 8, 0}) bytes += static_cast<char>(held >> shift & 255);
    held = 0;
  }
  const int rest = letters % 4;
  if (rest == 1 || (rest == 0 && pads > 0) || (rest > 1 && pads != 4 - rest)) return wrong("it is cut");
  if (rest > 1) bytes += static_cast<char>(held << (24 - 6 * rest) >> 16 & 255);
  if (rest > 2) bytes += static_cast<char>(held << (24 - 6 * rest) >> 8 & 255);
  return bytes;
}

}  // namespace systole
