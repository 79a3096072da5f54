// bert_words: what `tokenizers` does in normalizers/bert.rs and pre_tokenizers/bert.rs, with the properties of
// utf8proc's Unicode.

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <vector>

#include "execute/data/word_piece.h"

namespace systole {
namespace {

using Character = utf8proc_int32_t;

bool is_control(Character c) {
  if (c == '\t' || c == '\n' || c == '\r') return false;
  const utf8proc_category_t category = utf8proc_category(c);
  return category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF || category == UTF8PROC_CATEGORY_CO;
}

bool is_space(Character c) {
  if ((c >= 9 && c <= 13) || c == 0x85) return true;
  const utf8proc_category_t category = utf8proc_category(c);
  return category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL || category == UTF8PROC_CATEGORY_ZP;
}

bool is_punctuation(Character c) {
  if (c < 128) return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) || (c >= 123 && c <= 126);
  const utf8proc_category_t category = utf8proc_category(c);
  return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}

bool is_cjk(Character c) {
  static constexpr std::array<std::pair<Character, Character>, 8> kRanges{{{0x4E00, 0x9FFF},
                                                                           {0x3400, 0x4DBF},
                                                                           {0x20000, 0x2A6DF},
                                                                           {0x2A700, 0x2B73F},
                                                                           {0x2B740, 0x2B81F},
                                                                           {0x2B920, 0x2CEAF},
                                                                           {0xF900, 0xFAFF},
                                                                           {0x2F800, 0x2FA1F}}};
  return std::ranges::any_of(kRanges, [c](const auto& range) { return c >= range.first && c <= range.second; });
}

std::vector<Character> characters_of(std::string_view text) {
  std::vector<Character> characters;
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  for (std::size_t at = 0; at < text.size();) {
    Character c = 0;
    const utf8proc_ssize_t length = utf8proc_iterate(bytes + at, static_cast<utf8proc_ssize_t>(text.size() - at), &c);
    CHECK(length > 0, "this text is not UTF-8");
    characters.push_back(c);
    at += static_cast<std::size_t>(length);
  }
  return characters;
}

std::vector<Character> cleaned(const std::vector<Character>& text, const BertCleaning& cleaning) {
  std::vector<Character> result;
  for (const Character c : text) {
    if (cleaning.clean && (c == 0 || c == 0xFFFD || is_control(c))) continue;
    if (cleaning.cjk && is_cjk(c))
      result.insert(result.end(), {' ', c, ' '});
    else
      result.push_back(cleaning.clean && is_space(c) ? ' ' : c);
  }
  return result;
}

void append(std::string& text, Character c) {
  std::array<utf8proc_uint8_t, 4> letter{};
  const utf8proc_ssize_t length = utf8proc_encode_char(c, letter.data());
  text.append(reinterpret_cast<const char*>(letter.data()), static_cast<std::size_t>(length));
}

// NFD, without marks that are not spacing.
std::vector<Character> without_accents(const std::vector<Character>& text) {
  std::string bytes;
  for (const Character c : text) append(bytes, c);
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE);
  const auto* from = reinterpret_cast<const utf8proc_uint8_t*>(bytes.data());
  const auto size = static_cast<utf8proc_ssize_t>(bytes.size());
  std::vector<Character> result(static_cast<std::size_t>(utf8proc_decompose(from, size, nullptr, 0, options)));
  utf8proc_decompose(from, size, result.data(), static_cast<utf8proc_ssize_t>(result.size()), options);
  std::erase_if(result, [](Character c) { return utf8proc_category(c) == UTF8PROC_CATEGORY_MN; });
  return result;
}

}  // namespace

std::string bert_words(std::string_view text, const BertCleaning& cleaning) {
  std::vector<Character> characters = cleaned(characters_of(text), cleaning);
  if (cleaning.strip_accents) characters = without_accents(characters);
  std::string words;
  bool inside = false;
  const auto end_word = [&] {
    if (std::exchange(inside, false)) words += ' ';
  };
  for (const Character c : characters) {
    if (is_space(c)) {
      end_word();
      continue;
    }
    if (is_punctuation(c)) end_word();
    if (cleaning.lower && c == 0x130)  // the one letter whose lower case is two
      words += "i\u0307";
    else
      append(words, cleaning.lower ? utf8proc_tolower(c) : c);
    inside = true;
    if (is_punctuation(c)) end_word();
  }
  end_word();
  return words;
}

}  // namespace systole
