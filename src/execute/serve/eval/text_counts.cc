#include "execute/serve/eval/text_counts.h"

#include <algorithm>

#include "ground/base/utf8.h"

namespace systole {
namespace {

bool is_space(std::uint32_t code) {
  return (code >= 0x9 && code <= 0xD) || (code >= 0x1C && code <= 0x20) || code == 0x85 || code == 0xA0 ||
         code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 || code == 0x202F ||
         code == 0x205F || code == 0x3000;
}

// visit(offset, length, whether it is white space) of each character.
template <typename Visit>
void for_each_character(std::string_view text, const Visit& visit) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text.substr(at));
    visit(at, std::max<std::size_t>(length, 1), length > 0 && is_space(code_point_at(text.substr(at)).first));
    at += std::max<std::size_t>(length, 1);
  }
}

}  // namespace

std::int64_t count_characters(std::string_view text) {
  std::int64_t count = 0;
  for_each_character(text, [&](std::size_t, std::size_t, bool) { ++count; });
  return count;
}

std::int64_t count_words(std::string_view text) {
  std::int64_t stretches = 0;
  bool inside = false;
  for_each_character(text, [&](std::size_t, std::size_t, bool space) {
    if (space && !inside) ++stretches;
    inside = space;
  });
  return stretches + 1;
}

std::string_view without_space_behind(std::string_view text) {
  std::size_t end = 0;
  for_each_character(text, [&](std::size_t at, std::size_t length, bool space) {
    if (!space) end = at + length;
  });
  return text.substr(0, end);
}

std::string_view without_space_around(std::string_view text) {
  text = without_space_behind(text);
  std::size_t begin = text.size();
  for_each_character(text, [&](std::size_t at, std::size_t, bool space) {
    if (!space) begin = std::min(begin, at);
  });
  return text.substr(begin);
}

}  // namespace systole
