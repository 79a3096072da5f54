#include "execute/data/utf8.h"

#include <cstdint>
#include <cstring>

namespace systole {
namespace {

// The bounds of the second byte, and how many bytes follow the first; count 0 for a byte that starts nothing.
struct Lead {
  int count;
  unsigned low, high;
};

Lead lead_of(unsigned byte) {
  if (byte < 0xC2) return {0, 0, 0};
  if (byte <= 0xDF) return {1, 0x80, 0xBF};
  if (byte == 0xE0) return {2, 0xA0, 0xBF};
  if (byte == 0xED) return {2, 0x80, 0x9F};
  if (byte <= 0xEF) return {2, 0x80, 0xBF};
  if (byte == 0xF0) return {3, 0x90, 0xBF};
  if (byte <= 0xF3) return {3, 0x80, 0xBF};
  if (byte == 0xF4) return {3, 0x80, 0x8F};
  return {0, 0, 0};
}

}  // namespace

Utf8Step utf8_step(std::string_view text) {
  if (text.empty()) return {};
  const auto byte = [&](std::size_t i) { return static_cast<unsigned>(static_cast<unsigned char>(text[i])); };
  if (byte(0) < 0x80) return {1, true};
  const Lead lead = lead_of(byte(0));
  if (lead.count == 0) return {1, false};
  const auto wanted = static_cast<std::size_t>(lead.count) + 1;
  for (std::size_t i = 1; i < wanted; ++i) {
    const unsigned low = i == 1 ? lead.low : 0x80, high = i == 1 ? lead.high : 0xBF;
    if (i >= text.size() || byte(i) < low || byte(i) > high) return {i, false};
  }
  return {wanted, true};
}

std::size_t valid_utf8_prefix(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    std::uint64_t eight;
    if (at + sizeof(eight) <= text.size()) {
      std::memcpy(&eight, text.data() + at, sizeof(eight));
      if ((eight & 0x8080808080808080u) == 0) {
        at += sizeof(eight);
        continue;
      }
    }
    const Utf8Step step = utf8_step(text.substr(at));
    if (!step.valid) return at;
    at += step.length;
  }
  return at;
}

std::size_t replace_invalid_utf8(std::string& text) {
  std::size_t at = valid_utf8_prefix(text), replaced = 0;
  if (at == text.size()) return 0;
  std::string clean = text.substr(0, at);
  while (at < text.size()) {
    const std::string_view rest = std::string_view(text).substr(at);
    const std::size_t good = valid_utf8_prefix(rest);
    clean.append(rest.substr(0, good));
    at += good;
    if (good == rest.size()) break;
    clean.append("\xEF\xBF\xBD");
    at += utf8_step(rest.substr(good)).length;
    ++replaced;
  }
  text = std::move(clean);
  return replaced;
}

}  // namespace systole
