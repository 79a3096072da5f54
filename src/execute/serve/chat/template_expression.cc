#include "execute/serve/chat/template_expression.h"

#include <array>
#include <charconv>

namespace systole::chat {
namespace {

constexpr int kTallest = 300;  // of an expression's tree: a long sum is as deep as it is long

}  // namespace

ExprPtr ExpressionParser::make(Expr::Kind kind, int line) {
  auto expr = std::make_unique<Expr>();
  expr->kind = kind;
  expr->line = line;
  return expr;
}

ExprPtr ExpressionParser::grown(ExprPtr expr) {
  for (const ExprPtr& part : expr->parts) {
    if (part != nullptr) expr->height = std::max(expr->height, part->height + 1);
  }
  for (const auto& [name, part] : expr->named) expr->height = std::max(expr->height, part->height + 1);
  if (expr->height > kTallest) fail_at(expr->line, "nested too deeply");
  return expr;
}

ExprPtr ExpressionParser::binary(std::string op, int line, ExprPtr a, ExprPtr b) {
  ExprPtr expr = make(Expr::Kind::binary, line);
  expr->name = std::move(op);
  expr->parts.push_back(std::move(a));
  expr->parts.push_back(std::move(b));
  return grown(std::move(expr));
}

ExprPtr ExpressionParser::unary(std::string op, int line, ExprPtr a) {
  ExprPtr expr = make(Expr::Kind::unary, line);
  expr->name = std::move(op);
  expr->parts.push_back(std::move(a));
  return grown(std::move(expr));
}

ExprPtr ExpressionParser::tuple() {
  ExprPtr first = expression();
  if (!is_sign(",")) return first;
  ExprPtr list = make(Expr::Kind::list, first->line);
  list->name = "(";
  list->parts.push_back(std::move(first));
  while (accept(",") && !is_sign(")")) list->parts.push_back(expression());
  return grown(std::move(list));
}

ExprPtr ExpressionParser::expression() {
  const Level level(*this);
  ExprPtr value = disjunction();
  while (is_word("if")) {
    ExprPtr expr = make(Expr::Kind::conditional, take().line);
    expr->parts.push_back(disjunction());
    expr->parts.push_back(std::move(value));
    expr->parts.push_back(accept_word("else") ? expression() : nullptr);
    value = grown(std::move(expr));
  }
  return value;
}

ExprPtr ExpressionParser::disjunction() {
  ExprPtr value = conjunction();
  while (is_word("or")) {
    const int line = take().line;
    value = binary("or", line, std::move(value), conjunction());
  }
  return value;
}

ExprPtr ExpressionParser::conjunction() {
  ExprPtr value = negation();
  while (is_word("and")) {
    const int line = take().line;
    value = binary("and", line, std::move(value), negation());
  }
  return value;
}

ExprPtr ExpressionParser::negation() {
  const Level level(*this);
  if (!is_word("not")) return comparison();
  const int line = take().line;
  return unary("not", line, negation());
}

ExprPtr ExpressionParser::comparison() {
  ExprPtr value = sum();
  for (int comparisons = 0;; ++comparisons) {
    const int line = here().line;
    if (is_word("not") && after().kind == Kind::name && after().text == "in") {
      at_ += 2;
      value = unary("not", line, binary("in", line, std::move(value), sum()));
      continue;
    }
    static constexpr std::array<std::string_view, 6> kSigns{"==", "!=", "<", "<=", ">", ">="};
    const bool compares = here().kind == Kind::sign && std::ranges::find(kSigns, here().text) != kSigns.end();
    if (!compares && !is_word("in")) return value;
    if (comparisons > 0) fail_at(line, "a chain of comparisons is not supported", ErrorKind::unsupported);
    std::string op = take().text;
    value = binary(std::move(op), line, std::move(value), sum());
  }
}

template <typename Next>
ExprPtr ExpressionParser::left_to_right(std::initializer_list<std::string_view> signs, Next next) {
  ExprPtr value = next();
  while (here().kind == Kind::sign && std::ranges::find(signs, here().text) != signs.end()) {
    Token op = take();
    value = binary(std::move(op.text), op.line, std::move(value), next());
  }
  return value;
}

ExprPtr ExpressionParser::sum() {
  return left_to_right({"+", "-"}, [&] { return left_to_right({"~"}, [&] { return product(); }); });
}

ExprPtr ExpressionParser::product() {
  return left_to_right({"*", "/", "//", "%"},
                       [&] { return left_to_right({"**"}, [&] { return signed_value(true); }); });
}

ExprPtr ExpressionParser::signed_value(bool with_filters) {
  const Level level(*this);
  ExprPtr value;
  if (is_sign("-") || is_sign("+")) {
    Token op = take();
    value = unary(std::move(op.text), op.line, signed_value(false));
  } else {
    value = postfix(primary());
  }
  return with_filters ? filters(std::move(value)) : std::move(value);
}

ExprPtr ExpressionParser::primary() {
  const Token token = take();
  ExprPtr expr = make(Expr::Kind::literal, token.line);
  if (token.kind == Kind::string) {
    std::string text = token.text;
    while (here().kind == Kind::string) text += take().text;
    expr->literal = Value(std::move(text));
  } else if (token.kind == Kind::number) {
    expr->literal = number(token);
  } else if (token.kind == Kind::name) {
    if (token.text == "true" || token.text == "True")
      expr->literal = Value(true);
    else if (token.text == "false" || token.text == "False")
      expr->literal = Value(false);
    else if (token.text != "none" && token.text != "None")
      expr->kind = Expr::Kind::name;
    expr->name = token.text;
  } else if (token.kind == Kind::sign && token.text == "(") {
    if (accept(")")) {
      expr->kind = Expr::Kind::list;
      expr->name = "(";
    } else {
      expr = tuple();
      expect(")");
    }
  } else if (token.kind == Kind::sign && token.text == "[") {
    expr->kind = Expr::Kind::list;
    items(*expr, "]");
  } else if (token.kind == Kind::sign && token.text == "{") {
    expr->kind = Expr::Kind::map;
    while (!is_sign("}")) {
      expr->parts.push_back(expression());
      expect(":");
      expr->parts.push_back(expression());
      if (!accept(",")) break;
    }
    expect("}");
  } else {
    fail_at(token.line, token.text.empty() ? "a value is expected" : fmt::format("'{}' is unexpected", token.text));
  }
  return grown(std::move(expr));
}

Value ExpressionParser::number(const Token& token) {
  if (token.text.find_first_of(".eE") == std::string::npos) {
    std::int64_t whole = 0;
    if (std::from_chars(token.text.data(), token.text.data() + token.text.size(), whole).ec == std::errc())
      return whole;
  }
  double value = 0;
  if (std::from_chars(token.text.data(), token.text.data() + token.text.size(), value).ec != std::errc())
    fail_at(token.line, fmt::format("'{}' is no number", token.text));
  return value;
}

void ExpressionParser::items(Expr& list, std::string_view end) {
  while (!is_sign(end)) {
    list.parts.push_back(expression());
    if (!accept(",")) break;
  }
  expect(end);
}

ExprPtr ExpressionParser::postfix(ExprPtr value) {
  while (true) {
    const int line = here().line;
    if (accept(".")) {
      const bool index = here().kind == Kind::number;
      ExprPtr expr = make(index ? Expr::Kind::subscript : Expr::Kind::attribute, line);
      expr->parts.push_back(std::move(value));
      if (index)
        expr->parts.push_back(primary());
      else
        expr->name = name();
      value = grown(std::move(expr));
    } else if (accept("[")) {
      value = subscript(std::move(value), line);
    } else if (accept("(")) {
      ExprPtr expr = make(Expr::Kind::call, line);
      expr->parts.push_back(std::move(value));
      arguments(*expr);
      value = grown(std::move(expr));
    } else {
      return value;
    }
  }
}

ExprPtr ExpressionParser::subscript(ExprPtr value, int line) {
  std::array<ExprPtr, 3> bounds;
  std::size_t colons = 0;
  while (!is_sign("]")) {
    if (accept(":")) {
      if (++colons > 2) fail_at(line, "a slice has at most two ':'");
    } else {
      if (bounds[colons] != nullptr) fail_at(line, "']' is expected");
      bounds[colons] = expression();
    }
  }
  expect("]");
  ExprPtr expr = make(colons == 0 ? Expr::Kind::subscript : Expr::Kind::slice, line);
  if (colons == 0 && bounds[0] == nullptr) fail_at(line, "an index is expected");
  expr->parts.push_back(std::move(value));
  for (std::size_t i = 0; i < (colons == 0 ? 1 : bounds.size()); ++i) expr->parts.push_back(std::move(bounds[i]));
  return grown(std::move(expr));
}

void ExpressionParser::arguments(Expr& call) {
  while (!is_sign(")")) {
    if (here().kind == Kind::name && after().kind == Kind::sign && after().text == "=") {
      std::string key = take().text;
      ++at_;
      call.named.emplace_back(std::move(key), expression());
    } else {
      call.parts.push_back(expression());
    }
    if (!accept(",")) break;
  }
  expect(")");
}

ExprPtr ExpressionParser::filters(ExprPtr value) {
  while (true) {
    const int line = here().line;
    if (accept("|")) {
      ExprPtr expr = make(Expr::Kind::filter, line);
      expr->name = name();
      expr->parts.push_back(std::move(value));
      if (accept("(")) arguments(*expr);
      value = grown(std::move(expr));
    } else if (accept_word("is")) {
      const bool negated = accept_word("not");
      ExprPtr expr = make(Expr::Kind::test, line);
      expr->name = name();
      expr->parts.push_back(std::move(value));
      if (accept("("))
        arguments(*expr);
      else if (here().kind == Kind::string || here().kind == Kind::number || is_sign("[") || is_sign("{") ||
               (here().kind == Kind::name && !is_word("else") && !is_word("or") && !is_word("and") && !is_word("if")))
        expr->parts.push_back(postfix(primary()));
      expr = grown(std::move(expr));
      value = negated ? unary("not", line, std::move(expr)) : std::move(expr);
    } else {
      return value;
    }
  }
}

}  // namespace systole::chat
