#include "execute/data/text_pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace systole {
namespace {

std::string message_of(int code) {
  PCRE2_UCHAR text[256] = {};
  pcre2_get_error_message(code, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

pcre2_code* code_of(const std::shared_ptr<const void>& code) {
  return static_cast<pcre2_code*>(const_cast<void*>(code.get()));
}

}  // namespace

Result<TextPattern> TextPattern::compile(std::string_view regex) {
  int code = 0;
  PCRE2_SIZE at = 0;
  pcre2_code* const raw = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(regex.data()), regex.size(),
                                        PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &code, &at, nullptr);
  if (raw == nullptr) {
    return error(ErrorKind::invalid, "'{}' is no regular expression: {} (at byte {})", regex, message_of(code), at)
        .hinted("a character with a meaning of its own is written behind a backslash: \\( \\. \\$");
  }
  TextPattern pattern;
  pattern.regex_ = regex;
  pattern.code_ = std::shared_ptr<const void>(
      raw, [](const void* p) { pcre2_code_free(static_cast<pcre2_code*>(const_cast<void*>(p))); });
  return pattern;
}

Result<std::optional<std::string>> TextPattern::first(std::string_view text) const {
  const std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> data(
      pcre2_match_data_create_from_pattern(code_of(code_), nullptr), pcre2_match_data_free);
  const int found =
      pcre2_match(code_of(code_), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), 0, 0, data.get(), nullptr);
  if (found == PCRE2_ERROR_NOMATCH) return std::optional<std::string>();
  if (found < 0) {
    return error(ErrorKind::invalid, "'{}' cannot be looked for in a text of {} bytes: {}", regex_, text.size(),
                 message_of(found))
        .hinted("use a pattern that backtracks less, without repetitions inside of repetitions");
  }
  const PCRE2_SIZE* const places = pcre2_get_ovector_pointer(data.get());
  const auto part = [&](int i) { return text.substr(places[2 * i], places[2 * i + 1] - places[2 * i]); };
  std::uint32_t groups = 0;
  pcre2_pattern_info(code_of(code_), PCRE2_INFO_CAPTURECOUNT, &groups);
  if (groups == 0) return std::optional(std::string(part(0)));
  for (int i = 1; i < found; ++i) {
    if (places[2 * i] != PCRE2_UNSET && !part(i).empty()) return std::optional(std::string(part(i)));
  }
  return std::optional(std::string());
}

}  // namespace systole
