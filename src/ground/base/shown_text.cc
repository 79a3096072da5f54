#include "ground/base/shown_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "ground/base/utf8.h"

namespace systole {
namespace {

bool is_shown(std::uint32_t c) {
  if (c == '\n' || c == '\t') return true;
  const bool control = c < 0x20 || (c >= 0x7F && c < 0xA0);
  const bool turns = c == 0x061C || c == 0x200E || c == 0x200F || (c >= 0x202A && c <= 0x202E) ||
                     (c >= 0x2066 && c <= 0x2069);  // Unicode's marks, embeddings and isolates for text direction
  return !control && !turns && c != 0x2028 && c != 0x2029;
}

// The length of the prefix of printable ASCII; most text is only that.
std::size_t plain_beginning(std::string_view text) {
  const auto end = std::ranges::find_if(text, [](char c) { return (c < ' ' && c != '\n' && c != '\t') || c == 0x7F; });
  return static_cast<std::size_t>(end - text.begin());
}

// The length of the ink code at the front of `text`; 0: none.
std::size_t ink_code(std::string_view text) {
  for (const std::string_view code : kInkCodes)
    if (text.starts_with(code)) return code.size();
  return 0;
}

std::string shown_as(std::string_view text, bool inked, bool cut) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const std::size_t plain = plain_beginning(text);
    shown += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    std::size_t length = utf8_length(text);
    const std::size_t ink = inked ? ink_code(text) : 0;
    if (ink > 0) {
      shown += text.substr(0, length = ink);
    } else if (length == 0 && cut) {
      shown += text.substr(0, length = 1);
    } else if (length == 0) {
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
      length = 1;
    } else if (const std::uint32_t c = code_point_at(text).first; is_shown(c)) {
      shown += text.substr(0, length);
    } else {
      shown += fmt::format("\\u{:04x}", c);
    }
    text.remove_prefix(length);
  }
  return shown;
}

}  // namespace

std::string printable(std::string_view text, bool inked) { return shown_as(text, inked, false); }
std::string printable_piece(std::string_view text) { return shown_as(text, false, true); }

std::string without_passwords(std::string_view text) {
  constexpr std::string_view kBegins = "://";
  std::string shown;
  while (true) {
    const std::size_t begin = text.find(kBegins);
    if (begin == text.npos) return shown.append(text);
    const std::size_t place = begin + kBegins.size();
    shown += text.substr(0, place);
    text.remove_prefix(place);
    const std::size_t user = text.substr(0, text.find_first_of("/?# \t\r\n")).rfind('@');
    if (user == text.npos) continue;
    shown += "***";
    text.remove_prefix(user);
  }
}

}  // namespace systole
