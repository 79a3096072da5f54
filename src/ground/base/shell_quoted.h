#pragma once
// Quoting for sh: the shell reads the result as one word, every character literal.

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

#include "ground/base/error.h"

namespace systole {

// Always in quotes.
inline std::string shell_quoted(std::string_view text) {
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

// One sh word, quoted only if needed. REQUIRES: no NUL, which no word can contain.
inline std::string shell_word(std::string_view text) {
  CHECK(text.find('\0') == text.npos, "a word of a shell holds no NUL");
  static constexpr std::string_view kPlain = "_@%+=:,./-";
  const bool plain = std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || kPlain.find(c) != kPlain.npos;
  });
  return plain && !text.empty() ? std::string(text) : shell_quoted(text);
}

// The words of a command as one line of sh.
inline std::string shell_line(std::span<const std::string> words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + shell_word(word);
  return line;
}

}  // namespace systole
