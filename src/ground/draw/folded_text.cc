#include "ground/draw/folded_text.h"

#include <algorithm>

namespace systole {
namespace {

// The number of bytes of the first `columns` columns.
std::size_t bytes_of(std::string_view text, std::size_t columns) {
  std::size_t end = 0;
  for (std::size_t shown = 0; end < text.size(); ++end) {
    if ((static_cast<unsigned char>(text[end]) & 0xc0) != 0x80 && ++shown > columns) break;
  }
  return end;
}

// The indent of continuation lines: the second column if it starts in the left half of the line, otherwise four beyond
// the line's own indent.
std::size_t hanging(std::string_view line, std::size_t width) {
  const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
  const std::size_t gap = line.substr(0, width / 2).rfind("  ");
  return gap != line.npos && gap > indent ? gap + 2 : indent + 4;
}

}  // namespace

std::size_t shown_width(std::string_view text) {
  std::size_t width = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      while (i < text.size() && text[i] != 'm') ++i;
    } else if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) {
      ++width;
    }
  }
  return width;
}

std::string cut_to(std::string_view text, int columns) {
  return std::string(text.substr(0, bytes_of(text, static_cast<std::size_t>(columns))));
}

std::string wrapped(std::string_view text, std::size_t width, const std::string& indent) {
  std::string lines;
  for (std::string before; !text.empty(); before = indent) {
    const std::size_t room = width > before.size() ? width - before.size() : 1;
    std::size_t end = text.size();
    if (shown_width(text) > room) {
      const std::size_t word = text.find_first_not_of(' ');  // the line's own indent comes before it
      end = text.rfind(' ', bytes_of(text, room));
      if (end == text.npos || end < word) end = std::min(text.find(' ', word), text.size());
    }
    const std::string_view line = text.substr(0, end);
    lines += before + std::string(line.substr(0, line.find_last_not_of(' ') + 1)) + "\n";
    text.remove_prefix(std::min(text.find_first_not_of(' ', end), text.size()));
  }
  return lines;
}

std::string folded(std::string_view text, int width) {
  std::string lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    const bool newline = end < text.size();
    if (shown_width(line) <= static_cast<std::size_t>(width)) {
      lines += line;
      if (newline) lines += '\n';
    } else {
      lines += wrapped(line, static_cast<std::size_t>(width),
                       std::string(hanging(line, static_cast<std::size_t>(width)), ' '));
    }
    text.remove_prefix(newline ? end + 1 : end);
  }
  return lines;
}

std::string folded_error(std::string_view text, int width) {
  std::string lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    const std::string_view line = text.substr(0, end);
    lines += line.starts_with(' ') ? std::string(line) : folded(line, width);
    text.remove_prefix(end);
  }
  return lines;
}

}  // namespace systole
