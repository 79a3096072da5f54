#include "execute/data/split_pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>

namespace systole {
namespace {

Error not_understood(std::string_view regex, std::string why) {
  return error(ErrorKind::unsupported, "the tokenizer splits text by '{}': {}", regex, why)
      .hinted("patterns like those of GPT-2, Llama 3 and GPT-4o are read; write this one in their way");
}

// Translates a pattern step by step.
class Translation {
 public:
  explicit Translation(std::string_view regex) : regex_(regex) {}

  Result<std::string> translate() {
    for (at_ = 0; at_ < regex_.size(); ++at_) {
      const char c = regex_[at_];
      if (c == '\\') {
        TRY(escape());
      } else if (in_class_) {
        TRY(class_member(c));
      } else {
        TRY(plain(c));
      }
    }
    return std::move(out_);
  }

 private:
  // White space as in Unicode (White_Space): PCRE2's \s would add U+180E or omit what is beyond ASCII.
  static constexpr std::string_view kSpaces = R"(\t-\r \x{85}\p{Z})";

  bool follows(std::string_view text) const { return regex_.substr(at_).starts_with(text); }
  Error differs(std::string_view part) const {
    return not_understood(regex_, fmt::format("what '{}' means differs between regular expressions", part));
  }

  Status escape() {
    if (at_ + 1 == regex_.size()) return not_understood(regex_, "it ends in a backslash");
    const char c = regex_[++at_];
    if (c == 's') {
      out_ += in_class_ ? std::string(kSpaces) : fmt::format("[{}]", kSpaces);
    } else if (c == 'S' && !in_class_) {
      out_ += fmt::format("[^{}]", kSpaces);
    } else if (c == 'd' || c == 'D') {
      out_ += c == 'd' ? "\\p{Nd}" : "\\P{Nd}";
    } else if (c == 'p' || c == 'P') {
      return property(c);
    } else if (std::string_view("nrtf").find(c) != std::string_view::npos ||
               (c > ' ' && c < '\x7f' && !alphanumeric(c))) {
      out_ += {'\\', c};
    } else if (c == 'x' && at_ + 1 < regex_.size() && regex_[at_ + 1] == '{') {
      out_ += "\\x";
    } else if (c == 'u' && hexadecimal(at_ + 1, 4)) {
      out_ += fmt::format("\\x{{{}}}", regex_.substr(at_ + 1, 4));
      at_ += 4;
    } else {
      return differs(regex_.substr(at_ - 1, 2));
    }
    return {};
  }

  static bool alphanumeric(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  }

  bool hexadecimal(std::size_t from, std::size_t count) const {
    const std::string_view digits = regex_.substr(std::min(from, regex_.size()), count);
    return digits.size() == count && digits.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
  }

  // General categories are the same. A longer name is a script here; Oniguruma matches Script, not Script_Extensions.
  Status property(char sign) {
    const std::size_t close = regex_.find('}', at_);
    if (at_ + 1 == regex_.size() || regex_[at_ + 1] != '{' || close == std::string_view::npos)
      return not_understood(regex_, "a property is written \\p{L}");
    std::string_view name = regex_.substr(at_ + 2, close - at_ - 2);
    const bool negated = name.starts_with('^');
    if (negated) name.remove_prefix(1);
    out_ += fmt::format("\\{}{{{}{}{}}}", sign, negated ? "^" : "", name.size() > 2 ? "sc:" : "", name);
    at_ = close;
    return {};
  }

  Status class_member(char c) {
    if (c == '[' || follows("&&")) return differs(follows("[:") ? "[:" : regex_.substr(at_, c == '[' ? 1 : 2));
    const bool first = at_ == class_begin_;
    if (c == ']' && first) return differs("[]");
    in_class_ = c != ']';
    out_ += c;
    return {};
  }

  Status plain(char c) {
    if (c == '^' || c == '$') return differs(std::string_view(&c, 1));
    if (c == '(') TRY(group());
    if (c == '{') TRY(repetition());
    out_ += c;
    if (c != '[') return {};
    in_class_ = true;
    if (at_ + 1 < regex_.size() && regex_[at_ + 1] == '^') out_ += regex_[++at_];
    class_begin_ = at_ + 1;
    return {};
  }

  // In Oniguruma (?i) inside a pattern extends over the next '|', and "(*" begins something only one of them knows.
  Status group() const {
    if (!follows("(?") && !follows("(*")) return {};
    if (at_ == 0 && follows("(?i)")) return {};
    for (const std::string_view known : {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:"}) {
      if (follows(known)) return {};
    }
    return differs(regex_.substr(at_, 4));
  }

  // {2}, {2,}, {2,3} and {2,3}? are the same. In Oniguruma {,3} begins at 0, and ? and + after other repetitions mean
  // "or not at all" and "again".
  Status repetition() const {
    const std::size_t close = regex_.find('}', at_);
    if (close == std::string_view::npos) return {};
    const std::string_view inner = regex_.substr(at_ + 1, close - at_ - 1);
    const char next = close + 1 < regex_.size() ? regex_[close + 1] : '\0';
    const bool exact = inner.find(',') == std::string_view::npos;
    if (inner.starts_with(',') || next == '+' || (next == '?' && exact))
      return differs(regex_.substr(at_, close - at_ + 2));
    return {};
  }

  std::string_view regex_;
  std::size_t at_ = 0, class_begin_ = 0;
  bool in_class_ = false;
  std::string out_;
};

std::string message_of(int code) {
  PCRE2_UCHAR text[256] = {};
  pcre2_get_error_message(code, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

pcre2_code* code_of(const std::shared_ptr<const void>& code) {
  return static_cast<pcre2_code*>(const_cast<void*>(code.get()));
}

// The compiled pattern, and whether it is JIT-compiled. `regex` is for messages.
Result<std::pair<std::shared_ptr<const void>, bool>> compiled(std::string_view pattern, std::string_view regex) {
  const std::unique_ptr<pcre2_compile_context, decltype(&pcre2_compile_context_free)> context(
      pcre2_compile_context_create(nullptr), pcre2_compile_context_free);
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int code = 0;
  PCRE2_SIZE at = 0;
  pcre2_code* raw = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                  PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C, &code, &at, context.get());
  if (raw == nullptr) return not_understood(regex, message_of(code));
  std::shared_ptr<const void> owned(
      raw, [](const void* p) { pcre2_code_free(static_cast<pcre2_code*>(const_cast<void*>(p))); });
  std::uint32_t empty = 0;
  pcre2_pattern_info(raw, PCRE2_INFO_MATCHEMPTY, &empty);
  if (empty != 0) return not_understood(regex, "it matches where there is nothing");
  const bool jit = pcre2_jit_compile(raw, PCRE2_JIT_COMPLETE) == 0;
  return std::pair{std::move(owned), jit};
}

}  // namespace

Result<std::string> translate_pattern(std::string_view regex) { return Translation(regex).translate(); }

Result<SplitPattern> SplitPattern::compile(std::string_view regex) {
  SplitPattern pattern;
  const std::string translated = TRY(translate_pattern(regex));
  std::tie(pattern.code_, pattern.jit_) = TRY(compiled(translated, regex));
  return pattern;
}

Result<SplitPattern> SplitPattern::literal(std::string_view text) {
  std::string escaped;
  for (const char c : text)
    escaped += static_cast<unsigned char>(c) < 0x80 ? fmt::format("\\x{{{:x}}}", c) : std::string(1, c);
  SplitPattern pattern;
  std::tie(pattern.code_, pattern.jit_) = TRY(compiled(escaped, text));
  return pattern;
}

void SplitPattern::Matcher::Free::operator()(void* data) const {
  pcre2_match_data_free(static_cast<pcre2_match_data*>(data));
}

SplitPattern::Matcher::Matcher(const SplitPattern& pattern)
    : code_(pattern.code_),
      data_(pcre2_match_data_create_from_pattern(code_of(pattern.code_), nullptr)),
      jit_(pattern.jit_) {}

TextSpan SplitPattern::Matcher::next(std::string_view text, std::size_t from) {
  auto* const data = static_cast<pcre2_match_data*>(data_.get());
  const auto* const subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  int found = PCRE2_ERROR_JIT_STACKLIMIT;
  if (jit_) found = pcre2_jit_match(code_of(code_), subject, text.size(), from, 0, data, nullptr);
  if (found == PCRE2_ERROR_JIT_STACKLIMIT) {  // the interpreter has its stack on the heap
    found = pcre2_match(code_of(code_), subject, text.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, data, nullptr);
  }
  if (found == PCRE2_ERROR_NOMATCH) return {text.size(), text.size()};
  if (found < 0) {
    fail(error(ErrorKind::unsupported, "the tokenizer's pattern cannot split this text: {}", message_of(found))
             .hinted("use a tokenizer with a simpler pattern"));
  }
  const PCRE2_SIZE* const place = pcre2_get_ovector_pointer(data);
  return {place[0], place[1]};
}

}  // namespace systole
