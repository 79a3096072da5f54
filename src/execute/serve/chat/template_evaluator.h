#pragma once
// Values of a chat template's expressions, as Jinja has them, with bounds on what a template may take; chat_template.cc
// has the statements around them.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "execute/serve/chat/template_parser.h"

namespace systole::chat {

// All functions throw Failure: invalid, unsupported, does_not_fit.
class Evaluator {
 public:
  int line() const { return line_; }  // of what was last begun

 protected:
  // Variables of a scope, innermost last. The first two are the given ones and the template's own.
  class Scope {
   public:
    Scope() = default;
    Scope(Map values) : values_(std::move(values)) {}
    const Value* find(std::string_view name) const;
    void insert_or_assign(const std::string& name, Value value);

   private:
    Map values_;
  };

  struct Deeper {
    Deeper(Evaluator& evaluator, int line);
    ~Deeper() { --evaluator_.depth_; }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;
    Evaluator& evaluator_;
  };

  [[noreturn]] void too_much(const char* what);
  [[noreturn]] void wrong(const std::string& what);
  const Value* find(std::string_view name) const;
  void count(std::size_t steps);
  // Counts what an operation on a value goes over, and refuses values that are nested too deeply: a few lines of template
  // can make a list that is small in memory and endless in print. Of a map a key is searched from its front.
  const Value& charged(const Value& value, int depth = 0);
  Value made(Value value);
  // For an operation that does not go into what the value holds.
  const Value& glanced(const Value& value);
  const Value& glanced_text(const Value& value);
  void append(std::string& out, std::string_view text);
  Value value_of(const ExprPtr& e);
  Value value_of(const Expr& e);
  Arguments arguments_of(const Expr& e);
  Value item_of(const Value& whole, const Value& key, const std::string& attribute);
  Value slice(const Expr& e);
  Value call(const Expr& e);
  Value unary(const Expr& e);
  std::int64_t wrapping(std::int64_t a, std::int64_t b, char op);
  Value binary(const Expr& e);
  // Jinja escapes, for HTML, what it joins with a text that the filters safe and escape have marked.
  void check_marks(const Expr& e, const Value& a, const Value& b);
  Value concatenated(std::string a, const std::string& b);
  Value arithmetic(const std::string& op, const Value& a, const Value& b);

  std::vector<Scope> scopes_;

 private:
  int line_ = 0, depth_ = 0;
  std::int64_t steps_ = 0;
};

}  // namespace systole::chat
