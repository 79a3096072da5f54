#include "execute/serve/chat/template_parser.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "execute/serve/chat/template_lexer.h"
#include "ground/base/units.h"
#include "ground/base/utf8.h"

namespace systole::chat {
namespace {

constexpr int kDeepest = 200;                           // of nested blocks and expressions
constexpr int kTallest = 300;                           // of an expression's tree: a long sum is as deep as it is long
constexpr std::size_t kLongest = std::size_t{1} << 20;  // bytes of a template

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  Block run() {
    Block block = statements({});
    if (here().kind != Token::Kind::end) fail_at(here().line, fmt::format("'{}' ends nothing", tokens_[at_ + 1].text));
    return block;
  }

 private:
  using Kind = Token::Kind;

  // Counts the nesting while it exists.
  struct Level {
    explicit Level(Parser& parser) : parser_(parser) {
      if (++parser_.depth_ > kDeepest) fail_at(parser_.here().line, "nested too deeply");
    }
    ~Level() { --parser_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    Parser& parser_;
  };

  const Token& here() const { return tokens_[std::min(at_, tokens_.size() - 1)]; }
  const Token& after() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  Token take() { return tokens_[std::min(at_++, tokens_.size() - 1)]; }
  bool is_sign(std::string_view text) const { return here().kind == Kind::sign && here().text == text; }
  bool is_word(std::string_view text) const { return here().kind == Kind::name && here().text == text; }
  bool accept(std::string_view sign) {
    if (!is_sign(sign)) return false;
    ++at_;
    return true;
  }
  bool accept_word(std::string_view word) {
    if (!is_word(word)) return false;
    ++at_;
    return true;
  }
  void expect(std::string_view sign) {
    if (!accept(sign)) fail_at(here().line, fmt::format("'{}' is expected", sign));
  }
  void expect_word(std::string_view word) {
    if (!accept_word(word)) fail_at(here().line, fmt::format("'{}' is expected", word));
  }
  void end_block() {
    if (take().kind != Kind::end_block) fail_at(here().line, "'%}' is expected");
  }
  std::string name() {
    if (here().kind != Kind::name) fail_at(here().line, "a name is expected");
    return take().text;
  }

  // Up to a block tag whose word is one of `ends`; that tag is not taken.
  Block statements(std::initializer_list<std::string_view> ends) {
    const Level level(*this);
    Block block;
    while (here().kind != Kind::end) {
      if (here().kind == Kind::text) {
        Token token = take();
        block.push_back({.kind = Statement::Kind::text, .line = token.line, .text = std::move(token.text)});
      } else if (here().kind == Kind::begin_output) {
        Statement output{.kind = Statement::Kind::output, .line = take().line};
        output.expressions.push_back(expression());
        if (take().kind != Kind::end_output) fail_at(output.line, "'}}' is expected");
        block.push_back(std::move(output));
      } else {
        const std::string word = after().kind == Kind::name ? after().text : "";
        if (std::ranges::find(ends, word) != ends.end()) return block;
        if (word.starts_with("end") || word == "else" || word == "elif") return block;  // run() or the caller refuses
        at_ += 2;
        statement(word, block);
      }
    }
    return block;
  }
  // A block that a loop around it cannot leave.
  Block captured(std::initializer_list<std::string_view> ends) {
    const int loops = std::exchange(loops_, 0);
    Block block = statements(ends);
    loops_ = loops;
    return block;
  }
  void end_of(std::string_view word, int line) {
    if (here().kind != Kind::begin_block || after().text != word)
      fail_at(line, fmt::format("'{}' does not end", word.substr(3)));
    at_ += 2;
    end_block();
  }

  void statement(const std::string& word, Block& block) {
    const int line = here().line;
    if (word == "if") return block.push_back(branch(line));
    if (word == "for") return block.push_back(loop(line));
    if (word == "set") return block.push_back(set(line));
    if (word == "macro") return block.push_back(macro(line));
    if (word == "filter") return block.push_back(filter_block(line));
    if (word == "break" || word == "continue") {
      if (loops_ == 0) fail_at(line, fmt::format("'{}' outside of a loop", word));
      block.push_back(
          {.kind = word == "break" ? Statement::Kind::stop_loop : Statement::Kind::next_turn, .line = line});
      return end_block();
    }
    if (word == "generation") {  // marks an assistant's text for training; prints what it holds
      end_block();
      Statement result{.kind = Statement::Kind::filter, .line = line};
      result.expressions.push_back(text_of_block(line));
      result.blocks.push_back(captured({"endgeneration"}));
      block.push_back(std::move(result));
      return end_of("endgeneration", line);
    }
    fail_at(line, fmt::format("'{}' is no tag that chat templates may have here", word), ErrorKind::unsupported);
  }

  Statement branch(int line) {
    Statement result{.kind = Statement::Kind::branch, .line = line};
    result.expressions.push_back(expression());
    end_block();
    result.blocks.push_back(statements({"elif", "else", "endif"}));
    while (here().kind == Kind::begin_block && after().text == "elif") {
      at_ += 2;
      result.expressions.push_back(expression());
      end_block();
      result.blocks.push_back(statements({"elif", "else", "endif"}));
    }
    if (here().kind == Kind::begin_block && after().text == "else") {
      at_ += 2;
      end_block();
      result.blocks.push_back(statements({"endif"}));
    }
    end_of("endif", line);
    return result;
  }

  Statement loop(int line) {
    Statement result{.kind = Statement::Kind::loop, .line = line};
    const bool parentheses = accept("(");
    do result.names.push_back(name());
    while (accept(","));
    if (parentheses) expect(")");
    expect_word("in");
    result.expressions.push_back(disjunction());  // no conditional: `if` filters
    if (accept_word("if")) result.expressions.push_back(expression());
    if (is_word("recursive")) fail_at(line, "recursive loops are not supported", ErrorKind::unsupported);
    end_block();
    ++loops_;
    result.blocks.push_back(statements({"else", "endfor"}));
    --loops_;
    if (here().kind == Kind::begin_block && after().text == "else") {
      at_ += 2;
      end_block();
      result.blocks.push_back(statements({"endfor"}));
    }
    end_of("endfor", line);
    return result;
  }

  Statement set(int line) {
    Statement result{.kind = Statement::Kind::set, .line = line};
    result.names.push_back(name());
    if (accept(".")) {
      result.names.push_back(name());
      result.of_namespace = true;
    }
    while (accept(",")) result.names.push_back(name());
    if (accept("=")) {
      result.expressions.push_back(tuple());
      end_block();
      return result;
    }
    result.kind = Statement::Kind::set_block;
    if (is_sign("|")) result.expressions.push_back(filters(text_of_block(line)));
    end_block();
    result.blocks.push_back(captured({"endset"}));
    end_of("endset", line);
    return result;
  }

  Statement macro(int line) {
    Statement result{.kind = Statement::Kind::macro, .line = line};
    result.names.push_back(name());
    expect("(");
    while (!is_sign(")")) {
      result.names.push_back(name());
      result.expressions.push_back(accept("=") ? expression() : nullptr);
      if (!accept(",")) break;
    }
    expect(")");
    end_block();
    result.blocks.push_back(captured({"endmacro"}));
    end_of("endmacro", line);
    return result;
  }

  Statement filter_block(int line) {
    Statement result{.kind = Statement::Kind::filter, .line = line};
    ExprPtr filter = make(Expr::Kind::filter, line);
    filter->parts.push_back(text_of_block(line));
    filter->name = name();
    if (accept("(")) arguments(*filter);
    result.expressions.push_back(filters(grown(std::move(filter))));
    end_block();
    result.blocks.push_back(captured({"endfilter"}));
    end_of("endfilter", line);
    return result;
  }

  // Stands for what a block prints; the evaluator binds the name.
  static ExprPtr text_of_block(int line) {
    ExprPtr text = make(Expr::Kind::name, line);
    text->name = " block";
    return text;
  }

  static ExprPtr make(Expr::Kind kind, int line) {
    auto expr = std::make_unique<Expr>();
    expr->kind = kind;
    expr->line = line;
    return expr;
  }
  // To be called of each expression that is complete. Bounds the recursion over the tree, its destruction as well.
  static ExprPtr grown(ExprPtr expr) {
    for (const ExprPtr& part : expr->parts) {
      if (part != nullptr) expr->height = std::max(expr->height, part->height + 1);
    }
    for (const auto& [name, part] : expr->named) expr->height = std::max(expr->height, part->height + 1);
    if (expr->height > kTallest) fail_at(expr->line, "nested too deeply");
    return expr;
  }
  static ExprPtr binary(std::string op, int line, ExprPtr a, ExprPtr b) {
    ExprPtr expr = make(Expr::Kind::binary, line);
    expr->name = std::move(op);
    expr->parts.push_back(std::move(a));
    expr->parts.push_back(std::move(b));
    return grown(std::move(expr));
  }
  static ExprPtr unary(std::string op, int line, ExprPtr a) {
    ExprPtr expr = make(Expr::Kind::unary, line);
    expr->name = std::move(op);
    expr->parts.push_back(std::move(a));
    return grown(std::move(expr));
  }

  // One expression, or a list of them without brackets.
  ExprPtr tuple() {
    ExprPtr first = expression();
    if (!is_sign(",")) return first;
    ExprPtr list = make(Expr::Kind::list, first->line);
    list->name = "(";
    list->parts.push_back(std::move(first));
    while (accept(",") && !is_sign(")")) list->parts.push_back(expression());
    return grown(std::move(list));
  }

  ExprPtr expression() {
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
  ExprPtr disjunction() {
    ExprPtr value = conjunction();
    while (is_word("or")) {
      const int line = take().line;
      value = binary("or", line, std::move(value), conjunction());
    }
    return value;
  }
  ExprPtr conjunction() {
    ExprPtr value = negation();
    while (is_word("and")) {
      const int line = take().line;
      value = binary("and", line, std::move(value), negation());
    }
    return value;
  }
  ExprPtr negation() {
    const Level level(*this);
    if (!is_word("not")) return comparison();
    const int line = take().line;
    return unary("not", line, negation());
  }
  ExprPtr comparison() {
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
  ExprPtr left_to_right(std::initializer_list<std::string_view> signs, Next next) {
    ExprPtr value = next();
    while (here().kind == Kind::sign && std::ranges::find(signs, here().text) != signs.end()) {
      Token op = take();
      value = binary(std::move(op.text), op.line, std::move(value), next());
    }
    return value;
  }
  ExprPtr sum() {
    return left_to_right({"+", "-"}, [&] { return left_to_right({"~"}, [&] { return product(); }); });
  }
  ExprPtr product() {
    return left_to_right({"*", "/", "//", "%"},
                         [&] { return left_to_right({"**"}, [&] { return signed_value(true); }); });
  }
  ExprPtr signed_value(bool with_filters) {
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

  ExprPtr primary() {
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
  static Value number(const Token& token) {
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
  void items(Expr& list, std::string_view end) {
    while (!is_sign(end)) {
      list.parts.push_back(expression());
      if (!accept(",")) break;
    }
    expect(end);
  }

  ExprPtr postfix(ExprPtr value) {
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
  ExprPtr subscript(ExprPtr value, int line) {
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
  // After "(", up to and with ")".
  void arguments(Expr& call) {
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

  ExprPtr filters(ExprPtr value) {
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

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int depth_ = 0, loops_ = 0;
};

}  // namespace

Result<Block> parse_template(std::string_view source) {
  if (source.size() > kLongest)
    return error(ErrorKind::invalid, "a chat template of {}, at most {} are read",
                 to_string(Bytes(static_cast<std::int64_t>(source.size()))),
                 to_string(Bytes(static_cast<std::int64_t>(kLongest))));
  if (const std::optional<std::size_t> invalid = find_invalid_utf8(source))
    return error(ErrorKind::invalid, "the chat template is not UTF-8 at byte {}", *invalid);
  std::string text;  // with "\n" as the only end of a line, as Jinja reads it
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r' && i + 1 < source.size() && source[i + 1] == '\n') continue;
    text += source[i] == '\r' ? '\n' : source[i];
  }
  try {
    return Parser(tokens_of(text)).run();
  } catch (const Failure& failure) { return failure.error(); }
}

}  // namespace systole::chat
