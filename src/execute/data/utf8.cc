#include "execute/data/utf8.h"

#include <algorithm>

#include "ground/base/utf8.h"

namespace systole {
Utf8Step utf8_step(std::string_view text) {
  if (text.empty()) return {};
  if (const std::size_t length = utf8_length(text); length > 0) return {length, true};
  // Two or three bytes are a part if continuation bytes would complete them.
  for (std::size_t part = std::min<std::size_t>(3, text.size()); part > 1; --part) {
    if (utf8_length(std::string(text.substr(0, part)) + "\x80\x80") > 0) return {part, false};
  }
  return {1, false};
}

std::size_t replace_ill_formed_parts(std::string& text) {
  std::size_t replaced = 0;
  std::string clean;
  for (std::string_view rest = text; !rest.empty(); ++replaced) {
    const std::size_t good = find_invalid_utf8(rest).value_or(rest.size());
    if (good == text.size()) return 0;
    clean.append(rest.substr(0, good));
    rest.remove_prefix(good);
    if (rest.empty()) break;
    clean.append("\xEF\xBF\xBD");
    rest.remove_prefix(utf8_step(rest).length);
  }
  text = std::move(clean);
  return replaced;
}

}  // namespace systole
