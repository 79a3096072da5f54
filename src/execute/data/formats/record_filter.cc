#include "execute/data/formats/record_filter.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace systole {

using Kind = FieldValue::Kind;

// A tree; its depth is bounded by the parser.
struct RecordFilter::Expression {
  enum class Op { constant, field, equal, differs, less, at_most, more, at_least, in, contains, negated, both, either };
  Op op = Op::constant;
  FieldValue value;               // of a constant
  std::string path;               // of a field
  std::vector<Expression> inner;  // operands; of `in`, the value and the list's items
};

namespace {

using Expression = RecordFilter::Expression;
using Op = Expression::Op;
constexpr int kDeepest = 50;

constexpr std::pair<std::string_view, Op> kOperators[] = {
    {"==", Op::equal}, {"!=", Op::differs}, {"<=", Op::at_most}, {">=", Op::at_least}, {"<", Op::less}, {">", Op::more},
};

// Whether all of `text` is a number; then it is the value.
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

const char* kind_name(Kind kind) {
  switch (kind) {
    case Kind::null: return "null";
    case Kind::boolean: return "true or false";
    case Kind::number: return "a number";
    case Kind::text: return "a text";
  }
  return "?";
}

std::string shown_of(const Expression& expression, const FieldValue& value) {
  if (expression.op == Op::field) return fmt::format("'{}' ({})", expression.path, kind_name(value.kind));
  return kind_name(value.kind);
}

class Evaluation {
 public:
  explicit Evaluation(const RecordFilter::Field& field) : field_(field) {}

  Result<bool> holds(const Expression& expression) {
    switch (expression.op) {
      case Op::negated: return !TRY(holds(expression.inner[0]));
      case Op::both:
        for (const Expression& part : expression.inner)
          if (!TRY(holds(part))) return false;
        return true;
      case Op::either:
        for (const Expression& part : expression.inner)
          if (TRY(holds(part))) return true;
        return false;
      case Op::constant:
      case Op::field: {
        const FieldValue value = TRY(value_of(expression));
        if (value.kind == Kind::null) return false;
        if (value.kind == Kind::boolean) return value.boolean;
        if (value.kind == Kind::text && (value.text == "true" || value.text == "false")) return value.text == "true";
        return error(ErrorKind::invalid, "where: {} is neither true nor false", shown_of(expression, value))
            .hinted("compare it with something: field == \"x\"");
      }
      case Op::in:
        for (std::size_t i = 1; i < expression.inner.size(); ++i)
          if (TRY(compares(Op::equal, expression.inner[0], expression.inner[i]))) return true;
        return false;
      default: return compares(expression.op, expression.inner[0], expression.inner[1]);
    }
  }

 private:
  Result<FieldValue> value_of(const Expression& expression) {
    if (expression.op == Op::field) return field_(expression.path);
    return expression.value;
  }

  Result<bool> compares(Op op, const Expression& a, const Expression& b) {
    FieldValue left = TRY(value_of(a)), right = TRY(value_of(b));
    if (left.kind == Kind::null || right.kind == Kind::null) {
      const bool same = left.kind == right.kind;
      return op == Op::equal ? same : op == Op::differs && !same;
    }
    // What CSV and the members of a tar hold is text: a field of it is converted to the other side's kind.
    for (const bool swapped : {false, true}) {
      FieldValue& from = swapped ? right : left;
      const Expression& source = swapped ? b : a;
      const FieldValue& to = swapped ? left : right;
      if (source.op != Op::field || from.kind != Kind::text || to.kind == Kind::text || op == Op::contains) continue;
      if (!convert(from, to.kind))
        return error(ErrorKind::invalid, "where: '{}' is '{}', and it is compared with {}", source.path,
                     from.text.substr(0, 50), kind_name(to.kind));
    }
    if (left.kind != right.kind || (op == Op::contains && left.kind != Kind::text) ||
        (left.kind == Kind::boolean && op != Op::equal && op != Op::differs)) {
      return error(ErrorKind::invalid, "where: {} cannot be compared so with {}", shown_of(a, left), shown_of(b, right))
          .hinted(left.kind == Kind::number && right.kind == Kind::text ? "write the number without quotes" : "");
    }
    if (left.kind == Kind::text) {
      if (op == Op::contains) return left.text.find(right.text) != std::string::npos;
      return ordered(op, left.text, right.text);
    }
    if (left.integer && right.integer) return ordered(op, *left.integer, *right.integer);
    if (left.kind == Kind::number) return ordered(op, left.number, right.number);
    return ordered(op, left.boolean, right.boolean);
  }

  static bool convert(FieldValue& value, Kind to) {
    const std::string& text = value.text;
    if (to == Kind::boolean) {
      value.boolean = text == "true" || text == "True" || text == "1";
      const bool no = text == "false" || text == "False" || text == "0";
      value.kind = to;
      return value.boolean || no;
    }
    const std::size_t first = std::min(text.find_first_not_of(" \t\r\n"), text.size());
    const std::size_t end = text.find_last_not_of(" \t\r\n") + 1;
    return first < end && read_number(std::string_view(text).substr(first, end - first), value);
  }

  template <typename T>
  static bool ordered(Op op, const T& a, const T& b) {
    switch (op) {
      case Op::equal: return a == b;
      case Op::differs: return a != b;
      case Op::less: return a < b;
      case Op::at_most: return a <= b;
      case Op::more: return a > b;
      default: return a >= b;
    }
  }

  const RecordFilter::Field& field_;
};

}  // namespace

RecordFilter::RecordFilter() = default;
RecordFilter::~RecordFilter() = default;
RecordFilter::RecordFilter(RecordFilter&&) noexcept = default;
RecordFilter& RecordFilter::operator=(RecordFilter&&) noexcept = default;

Result<RecordFilter> RecordFilter::parse(std::string_view text, const Where& where) {
  RecordFilter filter;
  filter.root_ = std::make_unique<Expression>(TRY(Parser(text, where, filter.fields_).whole()));
  for (const std::string& field : filter.fields_) filter.paths_.emplace(field, TRY(FieldPath::parse(field)));
  return filter;
}

FieldValue RecordFilter::value_of(const Node& node) {
  FieldValue value;
  switch (node.kind()) {
    case NodeKind::null: break;
    case NodeKind::boolean:
      value.kind = Kind::boolean;
      value.boolean = node.text() == "true";
      break;
    case NodeKind::number:
      if (read_number(node.text(), value)) break;
      [[fallthrough]];
    case NodeKind::string:
      value.kind = Kind::text;
      value.text = node.text();
      break;
    case NodeKind::sequence:
    case NodeKind::map:
      value.kind = Kind::text;
      value.text = to_json(node);
      break;
  }
  return value;
}

std::vector<FieldComparison> RecordFilter::needed() const {
  std::vector<FieldComparison> all;
  const auto take = [&](const Expression& part) {
    using To = FieldComparison::Op;
    static constexpr std::pair<Op, To> kSame[] = {{Op::equal, To::equal},
                                                  {Op::less, To::less},
                                                  {Op::at_most, To::at_most},
                                                  {Op::more, To::more},
                                                  {Op::at_least, To::at_least}};
    const auto* same = std::ranges::find(kSame, part.op, &std::pair<Op, To>::first);
    if (same == std::end(kSame) || part.inner[0].op != Op::field || part.inner[1].op != Op::constant) return;
    if (part.inner[1].value.kind == Kind::null) return;
    all.push_back({part.inner[0].path, same->second, part.inner[1].value});
  };
  if (root_->op == Op::both)
    for (const Expression& part : root_->inner) take(part);
  else
    take(*root_);
  return all;
}

Result<bool> RecordFilter::keeps(const Field& field) const { return Evaluation(field).holds(*root_); }

Result<bool> RecordFilter::keeps(RecordReader& reader, const DataRecord& record) const {
  std::optional<std::vector<std::string>> all;
  return keeps([&](const std::string& path) -> Result<FieldValue> {
    if (path.find_first_of(".[") == path.npos) return value_of(TRY(reader.value(record, path)));
    if (!all) all = reader.field_names();
    const std::vector<std::string>& names = *all;
    std::string_view outer;  // the longest field that is the path, or that it leads into
    for (const std::string_view name : names) {
      const bool begins = path.starts_with(name) && name.size() > outer.size();
      if (begins && (path.size() == name.size() || path[name.size()] == '.' || path[name.size()] == '[')) outer = name;
    }
    if (outer.empty() || outer == path) return value_of(TRY(reader.value(record, path)));
    const std::string_view rest = std::string_view(path).substr(outer.size());
    const FieldPath inner = TRY(FieldPath::parse(rest[0] == '.' ? rest.substr(1) : rest));
    return json_value_at(TRY(reader.field(record, outer)), inner);
  });
}

}  // namespace systole
