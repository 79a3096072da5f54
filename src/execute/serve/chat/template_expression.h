#pragma once
// Expressions of chat templates, by recursive descent over the tokens of a template; template_parser.cc has the
// statements around them.

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "execute/serve/chat/template_lexer.h"
#include "execute/serve/chat/template_parser.h"

namespace systole::chat {

// All functions throw the Failure of fail_at.
class ExpressionParser {
 protected:
  explicit ExpressionParser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  static constexpr int kDeepest = 200;  // of nested blocks and expressions
  using Kind = Token::Kind;

  // Counts the nesting while it exists.
  struct Level {
    explicit Level(ExpressionParser& parser) : parser_(parser) {
      if (++parser_.depth_ > kDeepest) fail_at(parser_.here().line, "nested too deeply");
    }
    ~Level() { --parser_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    ExpressionParser& parser_;
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

  static ExprPtr make(Expr::Kind kind, int line);
  // To be called of each expression that is complete. Bounds the recursion over the tree, its destruction as well.
  static ExprPtr grown(ExprPtr expr);
  static ExprPtr binary(std::string op, int line, ExprPtr a, ExprPtr b);
  static ExprPtr unary(std::string op, int line, ExprPtr a);
  // One expression, or a list of them without brackets.
  ExprPtr tuple();
  ExprPtr expression();
  ExprPtr disjunction();
  ExprPtr conjunction();
  ExprPtr negation();
  ExprPtr comparison();
  template <typename Next>
  ExprPtr left_to_right(std::initializer_list<std::string_view> signs, Next next);
  ExprPtr sum();
  ExprPtr product();
  ExprPtr signed_value(bool with_filters);
  ExprPtr primary();
  static Value number(const Token& token);
  void items(Expr& list, std::string_view end);
  ExprPtr postfix(ExprPtr value);
  ExprPtr subscript(ExprPtr value, int line);
  // After "(", up to and with ")".
  void arguments(Expr& call);
  ExprPtr filters(ExprPtr value);

  std::vector<Token> tokens_;
  std::size_t at_ = 0;

 private:
  int depth_ = 0;
};

}  // namespace systole::chat
