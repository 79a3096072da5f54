#include "operate/cluster/words.h"

#include <algorithm>

#include "ground/base/number_from.h"

namespace systole {

std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  while (!line.empty()) {
    const std::size_t space = std::min(line.find(' '), line.size());
    words.push_back(line.substr(0, space));
    line.remove_prefix(std::min(space + 1, line.size()));
  }
  return words;
}

std::optional<std::int64_t> number_of(std::string_view word) {
  const std::optional<std::int64_t> number = number_from(word);
  return number && *number >= 0 ? number : std::nullopt;
}

}  // namespace systole
