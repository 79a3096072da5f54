#include "predict/backtest/row_words.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string>

namespace systole::backtest {
namespace {

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }
bool digit(char c) { return c >= '0' && c <= '9'; }

std::size_t place_of(std::string_view text, std::string_view words) {
  const auto at = std::search(text.begin(), text.end(), words.begin(), words.end(),
                              [](char a, char b) { return lower(a) == lower(b); });
  return at == text.end() ? text.npos : static_cast<std::size_t>(at - text.begin());
}

// Commas between digits separate thousands.
std::optional<double> number_of(std::string_view digits) {
  std::string plain;
  for (const char c : digits)
    if (c != ',') plain += c;
  double value = 0;
  const auto [end, code] = std::from_chars(plain.data(), plain.data() + plain.size(), value);
  if (code != std::errc() || end == plain.data()) return std::nullopt;
  return value;
}

}  // namespace

bool says(std::string_view text, std::string_view words) { return place_of(text, words) != text.npos; }

std::optional<double> number_after(std::string_view text, std::string_view words) {
  const std::size_t at = place_of(text, words);
  if (at == text.npos) return std::nullopt;
  text.remove_prefix(at + words.size());
  const std::size_t begin = text.find_first_not_of(" =:");
  if (begin == text.npos || !digit(text[begin])) return std::nullopt;
  text.remove_prefix(begin);
  return number_of(text.substr(0, std::min(text.find_first_not_of("0123456789.,"), text.size())));
}

std::optional<double> number_before(std::string_view text, std::string_view words) {
  const std::size_t end = place_of(text, words);
  if (end == text.npos || end == 0 || !digit(text[end - 1])) return std::nullopt;
  std::size_t begin = end;
  while (begin > 0 && (digit(text[begin - 1]) || text[begin - 1] == '.' || text[begin - 1] == ',')) --begin;
  return number_of(text.substr(begin, end - begin));
}

}  // namespace systole::backtest
