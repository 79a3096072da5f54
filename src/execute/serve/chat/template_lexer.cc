#include "execute/serve/chat/template_lexer.h"

#include <algorithm>
#include <charconv>

#include "ground/base/utf8.h"

namespace systole::chat {
namespace {

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {
    if (source_.ends_with('\n')) source_.remove_suffix(1);  // as keep_trailing_newline = False
  }
  std::vector<Token> run() {
    while (at_ < source_.size()) {
      const std::size_t tag = next_tag();
      text_until(tag);
      if (tag == source_.npos) break;
      if (source_[tag + 1] == '#')
        skip_comment();
      else
        read_tag(source_[tag + 1] == '{');
    }
    add(Token::Kind::end, "");
    return std::move(tokens_);
  }

 private:
  std::size_t next_tag() const {
    for (std::size_t tag = source_.find('{', at_); tag != source_.npos; tag = source_.find('{', tag + 1)) {
      if (tag + 1 < source_.size() && (source_[tag + 1] == '{' || source_[tag + 1] == '%' || source_[tag + 1] == '#'))
        return tag;
    }
    return source_.npos;
  }
  void add(Token::Kind kind, std::string text) { tokens_.push_back({kind, std::move(text), line_}); }
  void advance(std::size_t to) {
    line_ +=
        static_cast<int>(std::count(source_.begin() + static_cast<std::ptrdiff_t>(at_),
                                    source_.begin() + static_cast<std::ptrdiff_t>(std::min(to, source_.size())), '\n'));
    at_ = to;
  }

  // The text before the tag at `tag`, without the white space that the tags around it take.
  void text_until(std::size_t tag) {
    std::string_view text = source_.substr(at_, tag == source_.npos ? tag : tag - at_);
    if (takes_space_) text.remove_prefix(std::min(text.find_first_not_of(" \t\n\r\f\v"), text.size()));
    if (tag != source_.npos && tag + 2 < source_.size()) {
      const char sign = source_[tag + 2];
      const bool output = source_[tag + 1] == '{';
      if (sign == '-') {
        text = text.substr(0, text.find_last_not_of(" \t\n\r\f\v") + 1);
      } else if (!output && sign != '+') {
        const std::size_t line = text.rfind('\n') + 1;  // 0: the line began before this text
        if ((line > 0 || starts_line_) && text.find_first_not_of(" \t", line) == text.npos) text = text.substr(0, line);
      }
    }
    if (!text.empty()) add(Token::Kind::text, std::string(text));
    advance(tag == source_.npos ? source_.size() : tag);
  }

  // Past the end of a tag at at_ - 2; `minus`, `plus`: the sign before it.
  void after_tag(bool output, bool minus, bool plus) {
    takes_space_ = minus;
    starts_line_ = false;
    if (output || minus || plus || at_ >= source_.size() || source_[at_] != '\n') return;
    advance(at_ + 1);
    starts_line_ = true;
  }

  void skip_comment() {
    const std::size_t end = source_.find("#}", at_ + 2);
    if (end == source_.npos) fail_at(line_, "a comment does not end");
    const char before = source_[end - 1];
    const bool signs = end - 1 > at_ + 1;
    advance(end + 2);
    after_tag(false, signs && before == '-', signs && before == '+');
  }

  void read_tag(bool output) {
    add(output ? Token::Kind::begin_output : Token::Kind::begin_block, "");
    advance(at_ + 2);
    if (at_ < source_.size() && (source_[at_] == '-' || source_[at_] == '+')) advance(at_ + 1);
    const std::string_view end = output ? "}}" : "%}";
    int open = 0;  // brackets: "}}" may end two maps
    while (true) {
      const std::size_t next = source_.find_first_not_of(" \t\n\r\f\v", at_);
      if (next == source_.npos) fail_at(line_, "a tag does not end");
      advance(next);
      const std::string_view rest = source_.substr(at_);
      const bool sign = rest[0] == '-' || rest[0] == '+';
      if (open == 0 && (rest.starts_with(end) || (sign && rest.substr(1).starts_with(end)))) {
        add(output ? Token::Kind::end_output : Token::Kind::end_block, "");
        advance(at_ + (sign ? 3 : 2));
        after_tag(output, sign && rest[0] == '-', sign && rest[0] == '+');
        return;
      }
      read_token(rest, open);
    }
  }

  static bool begins_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }

  void read_token(std::string_view rest, int& open) {
    const char c = rest[0];
    if (begins_name(c)) {
      std::size_t n = 1;
      while (n < rest.size() && (begins_name(rest[n]) || is_digit(rest[n]))) ++n;
      add(Token::Kind::name, std::string(rest.substr(0, n)));
      return advance(at_ + n);
    }
    if (is_digit(c)) {
      std::size_t n = 1;
      while (n < rest.size() &&
             (is_digit(rest[n]) || rest[n] == '_' || (rest[n] == '.' && n + 1 < rest.size() && is_digit(rest[n + 1]))))
        ++n;
      if (n < rest.size() && (rest[n] == 'e' || rest[n] == 'E')) {
        std::size_t digit = n + 1;
        if (digit < rest.size() && (rest[digit] == '-' || rest[digit] == '+')) ++digit;
        if (digit < rest.size() && is_digit(rest[digit])) {
          for (n = digit; n < rest.size() && is_digit(rest[n]);) ++n;
        }
      }
      std::string text(rest.substr(0, n));
      std::erase(text, '_');
      add(Token::Kind::number, text);
      return advance(at_ + n);
    }
    if (c == '\'' || c == '"') return read_string(rest);
    for (const std::string_view sign : {"==", "!=", "<=", ">=", "//", "**"}) {
      if (!rest.starts_with(sign)) continue;
      add(Token::Kind::sign, std::string(sign));
      return advance(at_ + 2);
    }
    if (std::string_view("+-*/%~<>=|.,:()[]{}").find(c) == std::string_view::npos)
      fail_at(line_, fmt::format("'{}' is unexpected", c));
    if (c == '(' || c == '[' || c == '{') ++open;
    if (c == ')' || c == ']' || c == '}') open = std::max(0, open - 1);
    add(Token::Kind::sign, std::string(1, c));
    advance(at_ + 1);
  }

  // The character whose hexadecimal number follows "\\x" or "\\u"; `size` digits.
  std::size_t escaped(std::string_view rest, std::size_t size, std::string& text) {
    unsigned code = 0;
    const std::string_view digits = rest.substr(0, size);
    const char* end = digits.data() + digits.size();
    const auto [stop, problem] = std::from_chars(digits.data(), end, code, 16);
    if (digits.size() != size || problem != std::errc() || stop != end || (code >= 0xD800 && code < 0xE000))
      fail_at(line_, "a wrong \\x or \\u in a string");
    append_utf8(text, code);
    return size;
  }

  void read_string(std::string_view rest) {
    std::string text;
    std::size_t i = 1;
    for (; i < rest.size() && rest[i] != rest[0]; ++i) {
      if (rest[i] != '\\' || i + 1 == rest.size()) {
        text += rest[i];
        continue;
      }
      const char c = rest[++i];
      switch (c) {
        case 'n': text += '\n'; break;
        case 't': text += '\t'; break;
        case 'r': text += '\r'; break;
        case 'b': text += '\b'; break;
        case 'f': text += '\f'; break;
        case 'v': text += '\v'; break;
        case 'a': text += '\a'; break;
        case '\n': break;
        case '\\':
        case '\'':
        case '"': text += c; break;
        case 'x': i += escaped(rest.substr(i + 1), 2, text); break;
        case 'u': i += escaped(rest.substr(i + 1), 4, text); break;
        default: text += {'\\', c};
      }
    }
    if (i >= rest.size()) fail_at(line_, "a string does not end");
    add(Token::Kind::string, text);
    advance(at_ + i + 1);
  }

  std::string_view source_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool takes_space_ = false, starts_line_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokens_of(std::string_view source) { return Lexer(source).run(); }

void fail_at(int line, const std::string& what, ErrorKind kind) {
  fail(error(kind, "chat template, line {}: {}", line, what));
}

}  // namespace systole::chat
