#include "describe/spec/excerpt.h"

#include <algorithm>

#include "ground/base/utf8.h"

namespace systole {
namespace {

constexpr std::size_t kWidest = 100;  // columns of source shown

std::string_view line_of(std::string_view source, int number) {
  for (int i = 1; i < number; ++i) {
    const std::size_t end = source.find('\n');
    if (end == source.npos) return {};
    source.remove_prefix(end + 1);
  }
  std::string_view line = source.substr(0, source.find('\n'));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// Bytes of the YAML word that begins at `at`: a quoted text with its quotes, or a plain text up to its end.
std::size_t word_length(std::string_view line, std::size_t at) {
  const char first = line[at];
  if (first == '"' || first == '\'') {
    const std::size_t close = line.find(first, at + 1);
    if (close != line.npos) return close + 1 - at;
  }
  std::size_t end = at;
  while (end < line.size() && line.substr(end, 2) != " #" &&
         (end == at || std::string_view(",}]{[").find(line[end]) == std::string_view::npos)) {
    if (line[end] == ':' && (end + 1 == line.size() || line[end + 1] == ' ')) break;
    ++end;
  }
  while (end > at + 1 && line[end - 1] == ' ') --end;
  return std::max<std::size_t>(end - at, 1);
}

// Terminal columns: continuation bytes of UTF-8 count as none.
std::size_t columns(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
}

}  // namespace

std::string excerpt(std::string_view source, const Where& where) {
  if (where.line < 1 || where.col < 1) return {};
  std::string_view line = line_of(source, where.line);
  std::size_t at = static_cast<std::size_t>(where.col) - 1;
  if (at >= line.size() || find_invalid_utf8(line)) return {};
  const std::size_t length = word_length(line, at);
  std::string before, after;
  if (at > kWidest / 2) {
    std::size_t cut = at - kWidest / 2;
    while (cut < at && (line[cut] & 0xc0) == 0x80) ++cut;
    line.remove_prefix(cut);
    at -= cut;
    before = "…";
  }
  if (line.size() > kWidest) {
    std::size_t keep = kWidest;
    while (keep > 0 && (line[keep] & 0xc0) == 0x80) --keep;
    line = line.substr(0, keep);
    after = "…";
  }
  std::string shown(line);
  std::ranges::replace_if(
      shown, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
  const std::string number = std::to_string(where.line);
  const std::size_t indent = columns(line.substr(0, at)) + columns(before);
  const std::size_t carets = std::max<std::size_t>(columns(line.substr(at, length)), 1);
  return fmt::format("  {} | {}{}{}\n  {} | {}{}", number, before, shown, after, std::string(number.size(), ' '),
                     std::string(indent, ' '), std::string(carets, '^'));
}

Error with_excerpts(Error error, std::string_view source, std::string_view filename) {
  if (error.where.file == filename) {
    if (const std::string lines = excerpt(source, error.where); !lines.empty()) error.message += "\n" + lines;
  }
  for (Error& other : error.others) other = with_excerpts(std::move(other), source, filename);
  return error;
}

}  // namespace systole
