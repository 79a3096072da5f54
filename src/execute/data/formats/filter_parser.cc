// Recursive descent; its grammar is that of record_filter.h.

#include <algorithm>
#include <charconv>

#include "execute/data/formats/filter_expression.h"

namespace systole {

using Kind = FieldValue::Kind;

bool read_number(std::string_view text, FieldValue& value) {
  const char* const end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, value.number);
  if (code != std::errc() || stop != end) return false;
  value.kind = Kind::number;
  std::int64_t integer = 0;
  if (const auto [last, bad] = std::from_chars(text.data(), end, integer); bad == std::errc() && last == end)
    value.integer = integer;
  return true;
}

namespace {

using Expression = RecordFilter::Expression;
using Op = Expression::Op;
constexpr int kDeepest = 50;

constexpr std::pair<std::string_view, Op> kOperators[] = {
    {"==", Op::equal}, {"!=", Op::differs}, {"<=", Op::at_most}, {">=", Op::at_least}, {"<", Op::less}, {">", Op::more},
};

class Parser {
 public:
  Parser(std::string_view text, Where where, std::vector<std::string>& fields)
      : text_(text), where_(std::move(where)), fields_(fields) {}

  Result<Expression> whole() {
    Expression expression = TRY(either(0));
    skip_spaces();
    if (at_ < text_.size()) return stray();
    return expression;
  }

 private:
  static bool is_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           static_cast<unsigned char>(c) >= 0x80;
  }
  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n')) ++at_;
  }
  bool sign(std::string_view wanted) {
    skip_spaces();
    if (!text_.substr(at_).starts_with(wanted)) return false;
    at_ += wanted.size();
    return true;
  }
  bool word(std::string_view wanted) {
    skip_spaces();
    const std::size_t end = at_ + wanted.size();
    if (!text_.substr(at_).starts_with(wanted) || (end < text_.size() && is_name(text_[end]))) return false;
    at_ = end;
    return true;
  }
  Error wrong(std::size_t at, std::string_view what, std::string hint = {}) const {
    Where place = where_;
    if (place.line > 0) place.col += static_cast<int>(at);
    return error(ErrorKind::invalid, "where: character {} of '{}': {}", at + 1, text_.substr(0, 200), what)
        .at(std::move(place))
        .hinted(std::move(hint));
  }
  Error stray() const {
    const std::string_view rest = text_.substr(at_);
    if (rest.starts_with("=")) return wrong(at_, "one '=' compares nothing", "write ==");
    if (rest.starts_with("&&")) return wrong(at_, "'&&' is not known", "write and");
    if (rest.starts_with("||")) return wrong(at_, "'||' is not known", "write or");
    if (rest.starts_with("'")) return wrong(at_, "texts stand in double quotes", "write \"...\"");
    if (rest.starts_with("!")) return wrong(at_, "'!' is not known here", "write not");
    return wrong(at_, fmt::format("'{}' is not expected here", rest.substr(0, 20)),
                 "lang == \"en\" and score > 0.5 is an example");
  }

  Result<Expression> joined(Op op, std::string_view name, int depth, Result<Expression> (Parser::*part)(int)) {
    Expression first = TRY((this->*part)(depth));
    while (word(name)) {
      if (first.op != op) {
        Expression both;
        both.op = op;
        both.inner.push_back(std::move(first));
        first = std::move(both);
      }
      first.inner.push_back(TRY((this->*part)(depth)));
    }
    return first;
  }
  Result<Expression> either(int depth) { return joined(Op::either, "or", depth, &Parser::both); }
  Result<Expression> both(int depth) { return joined(Op::both, "and", depth, &Parser::negated); }

  Result<Expression> negated(int depth) {
    if (depth > kDeepest) return wrong(at_, "it is nested too deeply");
    if (word("not")) {
      Expression expression;
      expression.op = Op::negated;
      expression.inner.push_back(TRY(negated(depth + 1)));
      return expression;
    }
    if (sign("(")) {
      const std::size_t open = at_ - 1;
      Expression inside = TRY(either(depth + 1));
      if (!sign(")")) return at_ < text_.size() ? stray() : wrong(open, "this parenthesis is never closed");
      return inside;
    }
    return comparison();
  }

  Result<Expression> comparison() {
    Expression left = TRY(operand());
    Expression expression;
    for (const auto& [written, op] : kOperators) {
      if (!sign(written)) continue;
      expression.op = op;
      expression.inner.push_back(std::move(left));
      expression.inner.push_back(TRY(operand()));
      return expression;
    }
    if (word("contains")) {
      expression.op = Op::contains;
      expression.inner.push_back(std::move(left));
      expression.inner.push_back(TRY(operand()));
      return expression;
    }
    if (!word("in")) return left;
    expression.op = Op::in;
    expression.inner.push_back(std::move(left));
    if (!sign("[")) return wrong(at_, "a list is expected behind 'in'", "lang in [\"en\", \"de\"]");
    do { expression.inner.push_back(TRY(operand())); } while (sign(","));
    if (!sign("]")) return at_ < text_.size() ? stray() : wrong(at_, "the list is never closed");
    return expression;
  }

  Result<Expression> operand() {
    skip_spaces();
    Expression found;
    if (at_ == text_.size()) return wrong(at_, "the expression ends too early");
    const char c = text_[at_];
    if (c == '"' && !quoted_key()) {
      found.value.kind = Kind::text;
      found.value.text = TRY(quoted());
    } else if ((c >= '0' && c <= '9') || c == '-' || c == '.') {
      const auto [end, code] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), found.value.number);
      const std::string_view digits(text_.data() + at_, end);
      if (code != std::errc() || !read_number(digits, found.value)) return wrong(at_, "not a number");
      at_ += digits.size();
    } else if (word("true") || word("false")) {
      found.value.kind = Kind::boolean;
      found.value.boolean = text_[at_ - 2] == 'u';
    } else if (word("null")) {
      found.value.kind = Kind::null;
    } else if (is_name(c) || c == '"') {
      found.op = Op::field;
      found.path = TRY(path());
      if (std::ranges::find(fields_, found.path) == fields_.end()) fields_.push_back(found.path);
    } else {
      return stray();
    }
    return found;
  }

  // A quoted key of a path, "a.b".c, and not a text: a dot or bracket follows the quote.
  bool quoted_key() const {
    const std::size_t end = text_.find('"', at_ + 1);
    return end != text_.npos && end + 1 < text_.size() && (text_[end + 1] == '.' || text_[end + 1] == '[');
  }

  Result<std::string> quoted() {
    const std::size_t open = at_++;
    std::string text;
    for (; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size() && (text_[at_ + 1] == '"' || text_[at_ + 1] == '\\')) ++at_;
      text += text_[at_];
    }
    if (at_ == text_.size()) return wrong(open, "this quote is never closed");
    ++at_;
    return text;
  }

  Result<std::string> path() {
    const std::size_t begin = at_;
    bool in_quote = false, in_bracket = false;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '"') in_quote = !in_quote;
      if (c == '[' && !in_quote) in_bracket = true;
      const bool inside = in_quote || in_bracket;
      if (c == ']' && !in_quote) in_bracket = false;
      if (!inside && !is_name(c) && c != '.' && c != '"' && c != '-') break;
    }
    const std::string_view text = text_.substr(begin, at_ - begin);
    const Result<FieldPath> parsed = FieldPath::parse(text);
    if (!parsed.ok()) return wrong(begin, parsed.error().message, parsed.error().hint);
    return std::string(text);
  }

  std::string_view text_;
  Where where_;
  std::vector<std::string>& fields_;
  std::size_t at_ = 0;
};

}  // namespace

Result<RecordFilter::Expression> parse_filter(std::string_view text, const Where& where,
                                              std::vector<std::string>& fields) {
  return Parser(text, where, fields).whole();
}

}  // namespace systole
