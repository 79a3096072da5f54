#include "execute/serve/chat/chat_template.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "execute/serve/chat/template_functions.h"
#include "execute/serve/chat/template_text.h"
#include "ground/base/error.h"

namespace systole::chat {
namespace {

constexpr std::int64_t kMostSteps = 10'000'000;  // evaluations of one rendering, and values and text that they go over
constexpr int kDeepest = 500;                    // of nested evaluations
constexpr int kDeepestValue = 100;

enum class Flow { on, stop_loop, next_turn };

class Renderer {
 public:
  explicit Renderer(Map variables) {
    scopes_.push_back(global_functions());
    for (auto& [name, value] : variables) scopes_[0].insert_or_assign(name, std::move(value));
    scopes_.emplace_back();
  }

  std::string run(const Block& block) {
    std::string out;
    print(block, out);
    return out;
  }

 private:
  // Variables of a scope, innermost last. The first two are the given ones and the template's own.
  class Scope {
   public:
    Scope() = default;
    Scope(Map values) : values_(std::move(values)) {}
    const Value* find(std::string_view name) const {
      const auto found =
          std::ranges::find(values_, name, [](const auto& entry) { return std::string_view(entry.first); });
      return found == values_.end() ? nullptr : &found->second;
    }
    void insert_or_assign(const std::string& name, Value value) {
      if (const Value* found = find(name))
        *const_cast<Value*>(found) = std::move(value);
      else if (values_.size() >= kLargestMap)
        fail(error(ErrorKind::does_not_fit, "more than {} variables", kLargestMap));
      else
        values_.emplace_back(name, std::move(value));
    }

   private:
    Map values_;
  };

  struct Deeper {
    Deeper(Renderer& renderer, int line) : renderer_(renderer) {
      renderer_.line_ = line;
      if (++renderer_.depth_ > kDeepest) renderer_.too_much("nested too deeply");
      if (++renderer_.steps_ > kMostSteps) renderer_.too_much("too many steps");
    }
    ~Deeper() { --renderer_.depth_; }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;
    Renderer& renderer_;
  };

  [[noreturn]] void too_much(const char* what) { fail(error(ErrorKind::does_not_fit, "{}", what)); }
  [[noreturn]] void wrong(const std::string& what) { fail(error(ErrorKind::invalid, "{}", what)); }

  const Value* find(std::string_view name) const {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      if (const Value* found = scope->find(name)) return found;
    }
    return nullptr;
  }

  void count(std::size_t steps) {
    steps_ += static_cast<std::int64_t>(std::min(steps, std::size_t{1} << 40));
    if (steps_ > kMostSteps) too_much("too many steps");
  }
  // Counts what an operation on a value goes over, and refuses values that are nested too deeply: a few lines of template
  // can make a list that is small in memory and endless in print. Of a map a key is searched from its front.
  const Value& charged(const Value& value, int depth = 0) {
    count(1 + (value.is_string() ? value.text().size() / 16 : 0));
    if (depth > kDeepestValue) too_much("a value is nested too deeply");
    if (const List* list = value.list()) {
      for (const Value& item : *list) charged(item, depth + 1);
    }
    if (const Map* map = value.map()) {
      count(map->size() * map->size() / 64);
      for (const auto& [key, item] : *map) {
        count(key.size() / 64);
        charged(item, depth + 1);
      }
    }
    return value;
  }
  Value made(Value value) {
    charged(value);
    return value;
  }
  // For an operation that does not go into what the value holds.
  const Value& glanced(const Value& value) {
    if (value.is_string()) count(value.text().size() / 64);
    if (value.list() != nullptr) count(value.list()->size());
    if (value.map() != nullptr) count(value.map()->size());
    return value;
  }
  const Value& glanced_text(const Value& value) {
    if (value.is_string()) count(value.text().size() / 64);
    return value;
  }
  static bool holds_namespace(const Value& value) {
    if (value.is_namespace()) return true;
    if (const List* list = value.list()) return std::ranges::any_of(*list, holds_namespace);
    if (value.map() == nullptr) return false;
    return std::ranges::any_of(*value.map(), [](const auto& entry) { return holds_namespace(entry.second); });
  }

  void append(std::string& out, std::string_view text) {
    if (out.size() + text.size() > kLargestText) too_much("the text becomes too large");
    count(text.size() / 64);
    out += text;
  }

  Flow print(const Block& block, std::string& out) {
    for (const Statement& statement : block) {
      const Flow flow = print(statement, out);
      if (flow != Flow::on) return flow;
    }
    return Flow::on;
  }

  Flow print(const Statement& s, std::string& out) {
    const Deeper level(*this, s.line);
    switch (s.kind) {
      case Statement::Kind::text: append(out, s.text); return Flow::on;
      case Statement::Kind::output: append(out, made(value_of(s.expressions[0])).shown()); return Flow::on;
      case Statement::Kind::branch: {
        std::size_t i = 0;
        while (i < s.expressions.size() && !value_of(s.expressions[i]).truth()) ++i;
        return i < s.blocks.size() ? print(s.blocks[i], out) : Flow::on;
      }
      case Statement::Kind::loop: return loop(s, out);
      case Statement::Kind::set: assign(s); return Flow::on;
      case Statement::Kind::set_block: {
        Value text = captured(s.blocks[0]);
        if (!s.expressions.empty()) text = filtered(s.expressions[0], text);
        scopes_.back().insert_or_assign(s.names[0], std::move(text));
        return Flow::on;
      }
      case Statement::Kind::filter:
        append(out, filtered(s.expressions[0], captured(s.blocks[0])).shown());
        return Flow::on;
      case Statement::Kind::macro: define(s); return Flow::on;
      case Statement::Kind::stop_loop: return Flow::stop_loop;
      case Statement::Kind::next_turn: return Flow::next_turn;
    }
    return Flow::on;
  }

  std::string captured(const Block& block) {
    std::string text;
    scopes_.emplace_back();
    print(block, text);
    scopes_.pop_back();
    return text;
  }
  Value filtered(const ExprPtr& filters, const Value& text) {
    scopes_.emplace_back(Map{{" block", text}});
    Value result = value_of(filters);
    scopes_.pop_back();
    return result;
  }

  void unpack(Scope& scope, const std::vector<std::string>& names, Value value) {
    if (names.size() == 1) return scope.insert_or_assign(names[0], std::move(value));
    const List* parts = value.list();
    if (parts == nullptr || parts->size() != names.size())
      wrong(fmt::format("{} names for {}", names.size(), value.type_name()));
    for (std::size_t i = 0; i < names.size(); ++i) scope.insert_or_assign(names[i], (*parts)[i]);
  }

  void assign(const Statement& s) {
    Value value = value_of(s.expressions[0]);
    if (!s.of_namespace) return unpack(scopes_.back(), s.names, std::move(value));
    const Value* space = find(s.names[0]);
    if (space == nullptr || !space->is_namespace()) wrong(fmt::format("'{}' is no namespace", s.names[0]));
    if (holds_namespace(charged(value)))  // one in itself would have no end
      fail(error(ErrorKind::unsupported, "a namespace in a namespace is not supported"));
    if (space->map()->size() >= kLargestMap) too_much("a namespace becomes too large");
    Value(*space).set(s.names[1], std::move(value));
  }

  Flow loop(const Statement& s, std::string& out) {
    List items;
    {
      const Value over = value_of(s.expressions[0]);
      if (over.is_none() || over.is_number()) wrong(fmt::format("a loop over {}", over.type_name()));
      items = *apply_filter("list", glanced(over), {}).list();
    }
    if (s.expressions.size() > 1) {
      List kept;
      for (Value& item : items) {
        scopes_.emplace_back();
        unpack(scopes_.back(), s.names, item);
        if (value_of(s.expressions[1]).truth()) kept.push_back(std::move(item));
        scopes_.pop_back();
      }
      items = std::move(kept);
    }
    if (items.empty()) return s.blocks.size() > 1 ? print(s.blocks[1], out) : Flow::on;
    const auto size = static_cast<std::int64_t>(items.size());
    for (std::int64_t i = 0; i < size; ++i) {
      const auto at = static_cast<std::size_t>(i);
      count(8);
      Map turn{{"index", i + 1},
               {"index0", i},
               {"revindex", size - i},
               {"revindex0", size - i - 1},
               {"first", i == 0},
               {"last", i + 1 == size},
               {"length", size},
               {"previtem", i > 0 ? items[at - 1] : Value::undefined("previtem")},
               {"nextitem", i + 1 < size ? items[at + 1] : Value::undefined("nextitem")},
               {"depth", 1},
               {"depth0", 0}};
      turn.emplace_back("cycle", Function([i](const Arguments& arguments) -> Value {
                          if (arguments.positional.empty()) fail(error(ErrorKind::invalid, "cycle of nothing"));
                          return arguments.positional[static_cast<std::size_t>(i) % arguments.positional.size()];
                        }));
      scopes_.emplace_back(Map{{"loop", Value(std::move(turn))}});
      unpack(scopes_.back(), s.names, items[at]);
      const Flow flow = print(s.blocks[0], out);
      scopes_.pop_back();
      if (flow == Flow::stop_loop) break;
    }
    return Flow::on;
  }

  void define(const Statement& s) {
    scopes_.back().insert_or_assign(s.names[0], Function([this, &s](const Arguments& arguments) -> Value {
                                      const Deeper level(*this, s.line);
                                      if (arguments.positional.size() >= s.names.size())
                                        wrong(fmt::format("too many arguments of '{}'", s.names[0]));
                                      for (const auto& [name, value] : arguments.named) {
                                        if (std::find(s.names.begin() + 1, s.names.end(), name) == s.names.end())
                                          wrong(fmt::format("'{}' has no argument '{}'", s.names[0], name));
                                      }
                                      Map given;
                                      for (std::size_t i = 1; i < s.names.size(); ++i) {
                                        const Value* value = arguments.find(i - 1, s.names[i]);
                                        const ExprPtr& otherwise = s.expressions[i - 1];
                                        given.emplace_back(s.names[i], value != nullptr ? *value
                                                                       : otherwise != nullptr
                                                                           ? value_of(otherwise)
                                                                           : Value::undefined(s.names[i]));
                                      }
                                      // A macro sees what the template has, not what its caller has.
                                      std::vector<Scope> hidden(std::make_move_iterator(scopes_.begin() + 2),
                                                                std::make_move_iterator(scopes_.end()));
                                      scopes_.resize(2);
                                      scopes_.emplace_back(std::move(given));
                                      std::string text;
                                      print(s.blocks[0], text);
                                      scopes_.resize(2);
                                      for (Scope& scope : hidden) scopes_.push_back(std::move(scope));
                                      return text;
                                    }));
  }

  Value value_of(const ExprPtr& e) { return value_of(*e); }

  Value value_of(const Expr& e) {
    const Deeper level(*this, e.line);
    using Kind = Expr::Kind;
    switch (e.kind) {
      case Kind::literal: return e.literal;
      case Kind::name: {
        const Value* found = find(e.name);
        if (found == nullptr) return Value::undefined(e.name);
        if (found->is_string()) count(found->text().size() / 64);
        return *found;
      }
      case Kind::list: {
        List list;
        for (const ExprPtr& part : e.parts) list.push_back(value_of(part));
        return made(e.name == "(" ? Value::tuple(std::move(list)) : Value(std::move(list)));
      }
      case Kind::map: {
        Value map{Map{}};
        for (std::size_t i = 0; i < e.parts.size(); i += 2) {
          const Value key = value_of(e.parts[i]);
          if (!key.is_string())
            fail(error(ErrorKind::unsupported, "a map with the key {}, which is no text, is not supported",
                       key.type_name()));
          if (i / 2 >= kLargestMap) too_much("a map becomes too large");
          map.set(key.text(), value_of(e.parts[i + 1]));
        }
        return made(std::move(map));
      }
      case Kind::attribute: return item_of(value_of(e.parts[0]), Value(e.name), e.name);
      case Kind::subscript: return item_of(value_of(e.parts[0]), value_of(e.parts[1]), {});
      case Kind::slice: return slice(e);
      case Kind::call: return call(e);
      case Kind::filter: {
        const Value value = value_of(e.parts[0]);
        if (e.name == "length" || e.name == "count") return apply_filter(e.name, glanced(value), arguments_of(e));
        if (e.name == "first" || e.name == "last" || e.name == "list" || e.name == "default" || e.name == "items")
          return apply_filter(e.name, glanced(value), arguments_of(e));
        if (e.name == "sort" && value.list() != nullptr) count(value.list()->size() * 16);
        return made(apply_filter(e.name, charged(value), arguments_of(e)));
      }
      case Kind::test: {
        const Value value = value_of(e.parts[0]);
        return apply_test(e.name, value, arguments_of(e));
      }
      case Kind::unary: return unary(e);
      case Kind::binary: return binary(e);
      case Kind::conditional:
        if (value_of(e.parts[0]).truth()) return value_of(e.parts[1]);
        return e.parts[2] == nullptr ? Value::undefined("else") : value_of(e.parts[2]);
    }
    return {};
  }

  Arguments arguments_of(const Expr& e) {
    Arguments arguments;
    for (std::size_t i = 1; i < e.parts.size(); ++i) arguments.positional.push_back(made(value_of(e.parts[i])));
    for (const auto& [name, value] : e.named) arguments.named.emplace_back(name, made(value_of(value)));
    return arguments;
  }

  Value item_of(const Value& whole, const Value& key, const std::string& attribute) {
    if (whole.is_undefined()) {
      const std::string name = key.is_string() ? key.text() : key.repr();
      wrong(fmt::format("'{}' of what is undefined", name));
    }
    if (key.is_string()) {
      if (whole.map() != nullptr) count(whole.map()->size() / 16);
      const Value* found = whole.find(key.text());
      if (found != nullptr) return glanced_text(*found);
      return Value::undefined(key.text());
    }
    if (!key.is<std::int64_t>() && !key.is<bool>()) return Value::undefined(attribute);
    const auto at = [&](std::size_t size) {
      const std::int64_t index = key.integer();
      return index < 0 ? index + static_cast<std::int64_t>(size) : index;
    };
    if (const List* list = whole.list()) {
      const std::int64_t index = at(list->size());
      if (index < 0 || index >= static_cast<std::int64_t>(list->size())) return Value::undefined("item");
      return glanced_text((*list)[static_cast<std::size_t>(index)]);
    }
    if (whole.is_string()) {
      count(whole.text().size() / 2);
      const std::vector<std::string_view> all = characters(whole.text());
      const std::int64_t index = at(all.size());
      if (index < 0 || index >= static_cast<std::int64_t>(all.size())) return Value::undefined("item");
      return Value(all[static_cast<std::size_t>(index)]);
    }
    return Value::undefined("item");
  }

  Value slice(const Expr& e) {
    const Value whole = value_of(e.parts[0]);
    const auto bound = [&](std::size_t part) -> std::optional<std::int64_t> {
      if (e.parts[part] == nullptr) return std::nullopt;
      const Value value = value_of(e.parts[part]);
      if (value.is_none()) return std::nullopt;
      if (!value.is<std::int64_t>()) wrong(fmt::format("a slice by {}", value.type_name()));
      return value.integer();
    };
    const std::optional<std::int64_t> first = bound(1), last = bound(2), step = bound(3);
    const std::int64_t by = std::clamp<std::int64_t>(step.value_or(1), -kMostSteps, kMostSteps);
    if (by == 0) wrong("a slice with a step of 0");
    if (!whole.is_string() && whole.list() == nullptr) wrong(fmt::format("a slice of {}", whole.type_name()));
    if (whole.is_string()) count(whole.text().size() * 2);
    const List items = *apply_filter("list", glanced(whole), {}).list();
    const auto size = static_cast<std::int64_t>(items.size());
    const std::int64_t lowest = by > 0 ? 0 : -1, highest = by > 0 ? size : size - 1;
    const auto place = [&](std::optional<std::int64_t> value, std::int64_t otherwise) {
      if (!value) return otherwise;
      return std::clamp(*value < 0 ? *value + size : *value, lowest, highest);
    };
    const std::int64_t begin = place(first, by > 0 ? lowest : highest), end = place(last, by > 0 ? highest : lowest);
    List taken;
    for (std::int64_t i = begin; by > 0 ? i < end : i > end; i += by)
      taken.push_back(items[static_cast<std::size_t>(i)]);
    if (whole.is_string()) return apply_filter("join", taken, {});
    return whole.is_tuple() ? Value::tuple(std::move(taken)) : Value(std::move(taken));
  }

  Value call(const Expr& e) {
    const Expr& callee = *e.parts[0];
    if (callee.kind == Expr::Kind::attribute) {
      const Value whole = value_of(callee.parts[0]);
      if (whole.is_undefined()) wrong(fmt::format("'{}' of what is undefined", callee.name));
      if (has_method(whole, callee.name) && !whole.is_namespace()) {
        const bool glances = callee.name == "get" || callee.name == "keys" || callee.name == "items";
        if (glances) return call_method(glanced(whole), callee.name, arguments_of(e));
        return made(call_method(charged(whole), callee.name, arguments_of(e)));
      }
      const Value* found = whole.find(callee.name);
      if (found == nullptr || found->function() == nullptr)
        fail(error(ErrorKind::unsupported, "the method '{}' of {} is not supported", callee.name, whole.type_name()));
      const Value function = *found;  // while it runs it may be set anew
      return made((*function.function())(arguments_of(e)));
    }
    const Value function = value_of(callee);
    if (function.function() == nullptr) {
      if (callee.kind == Expr::Kind::name)
        fail(error(ErrorKind::unsupported, "the function '{}' is not supported", callee.name));
      wrong(fmt::format("a call of {}", function.type_name()));
    }
    return made((*function.function())(arguments_of(e)));
  }

  Value unary(const Expr& e) {
    const Value value = value_of(e.parts[0]);
    if (e.name == "not") return !value.truth();
    if (!value.is_number()) wrong(fmt::format("'{}' of {}", e.name, value.type_name()));
    if (e.name == "+") return value;
    return value.is<double>() ? Value(-value.number()) : Value(wrapping(0, value.integer(), '-'));
  }

  std::int64_t wrapping(std::int64_t a, std::int64_t b, char op) {
    std::int64_t result = 0;
    const bool over = op == '+'   ? __builtin_add_overflow(a, b, &result)
                      : op == '-' ? __builtin_sub_overflow(a, b, &result)
                                  : __builtin_mul_overflow(a, b, &result);
    if (over) wrong("a number is too large");
    return result;
  }

  Value binary(const Expr& e) {
    Value a = value_of(e.parts[0]);
    if (e.name == "and") return a.truth() ? value_of(e.parts[1]) : a;
    if (e.name == "or") return a.truth() ? a : value_of(e.parts[1]);
    const Value b = value_of(e.parts[1]);
    if (e.name == "+" && a.list() != nullptr && b.list() != nullptr) {
      glanced(a);
      glanced(b);
      return arithmetic(e.name, a, b);
    }
    charged(a);
    charged(b);
    if (e.name == "+") check_marks(e, a, b);
    if (e.name == "==") return a == b;
    if (e.name == "!=") return !(a == b);
    if (e.name == "in") return contains(b, a);
    if (e.name == "<") return compare(a, b) < 0;
    if (e.name == "<=") return compare(a, b) <= 0;
    if (e.name == ">") return compare(a, b) > 0;
    if (e.name == ">=") return compare(a, b) >= 0;
    if (e.name == "~") return concatenated(a.shown(), b.shown());
    return arithmetic(e.name, a, b);
  }

  // Jinja escapes, for HTML, what it joins with a text that the filters safe and escape have marked.
  void check_marks(const Expr& e, const Value& a, const Value& b) {
    const auto marked = [](const ExprPtr& part) {
      return part->kind == Expr::Kind::filter && (part->name == "safe" || part->name == "escape" || part->name == "e");
    };
    const bool first = marked(e.parts[0]), second = marked(e.parts[1]);
    if (first == second) return;
    if ((first ? b : a).shown().find_first_of("&<>\"'") != std::string::npos)
      fail(error(ErrorKind::unsupported, "HTML in a text that is joined with one through '{}' is not supported",
                 e.parts[first ? 0 : 1]->name));
  }

  Value concatenated(std::string a, const std::string& b) {
    append(a, b);
    count(a.size() / 64);
    return a;
  }

  Value arithmetic(const std::string& op, const Value& a, const Value& b) {
    if (op == "+" && a.is_string() && b.is_string()) return concatenated(a.text(), b.text());
    if (op == "+" && a.list() != nullptr && b.list() != nullptr && a.is_tuple() == b.is_tuple()) {
      if (a.list()->size() + b.list()->size() > kLargestList) too_much("a list becomes too large");
      List all = *a.list();
      all.insert(all.end(), b.list()->begin(), b.list()->end());
      return a.is_tuple() ? Value::tuple(std::move(all)) : Value(std::move(all));
    }
    if (op == "*" && b.is_string() && a.is<std::int64_t>()) return arithmetic(op, b, a);
    if (op == "%" && a.is_string())
      fail(error(ErrorKind::unsupported, "'%' of a text, which formats it, is not supported"));
    if (op == "*" && a.is_string() && b.is<std::int64_t>()) {
      std::string text;
      for (std::int64_t i = 0; i < b.integer() && !a.text().empty(); ++i) append(text, a.text());
      count(text.size() / 4);
      return text;
    }
    if (!a.is_number() || !b.is_number()) wrong(fmt::format("'{}' of {} and {}", op, a.type_name(), b.type_name()));
    const bool whole = !a.is<double>() && !b.is<double>();
    if (whole && op.size() == 1 && std::string_view("+-*").find(op[0]) != std::string_view::npos)
      return wrapping(a.integer(), b.integer(), op[0]);
    const double x = a.number(), y = b.number();
    if (op == "+") return x + y;
    if (op == "-") return x - y;
    if (op == "*") return x * y;
    if (op == "**") {
      const double power = std::pow(x, y);
      return whole && y >= 0 && std::abs(power) < 0x1p53 ? Value(static_cast<std::int64_t>(power)) : Value(power);
    }
    if (y == 0) wrong("a division by 0");
    if (op == "/") return x / y;
    // As Python: rounded down, so that the rest has the sign of the divisor.
    if (whole && b.integer() == -1) return op == "%" ? Value(0) : Value(wrapping(0, a.integer(), '-'));
    if (whole) {
      const std::int64_t rest = a.integer() % b.integer();
      const bool down = rest != 0 && (rest < 0) != (b.integer() < 0);
      return op == "%" ? Value(down ? rest + b.integer() : rest) : Value(a.integer() / b.integer() - (down ? 1 : 0));
    }
    return op == "%" ? x - y * std::floor(x / y) : std::floor(x / y);
  }

 public:
  int line() const { return line_; }

 private:
  std::vector<Scope> scopes_;
  int line_ = 0, depth_ = 0;
  std::int64_t steps_ = 0;
};

}  // namespace

Result<ChatTemplate> ChatTemplate::parse(std::string_view source) {
  ChatTemplate result;
  result.block_ = std::make_shared<const Block>(TRY(parse_template(source)));
  result.source_ = std::make_shared<const std::string>(source);
  return result;
}

Result<std::string> ChatTemplate::render(Map variables) const {
  Renderer renderer(std::move(variables));
  try {
    return renderer.run(*block_);
  } catch (const Failure& failure) {
    Error error = failure.error();
    error.message = fmt::format("chat template, line {}: {}", renderer.line(), error.message);
    return error;
  }
}

}  // namespace systole::chat
