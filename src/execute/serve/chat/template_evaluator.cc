#include "execute/serve/chat/template_evaluator.h"

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

}  // namespace

const Value* Evaluator::Scope::find(std::string_view name) const {
  const auto found = std::ranges::find(values_, name, [](const auto& entry) { return std::string_view(entry.first); });
  return found == values_.end() ? nullptr : &found->second;
}

void Evaluator::Scope::insert_or_assign(const std::string& name, Value value) {
  if (const Value* found = find(name))
    *const_cast<Value*>(found) = std::move(value);
  else if (values_.size() >= kLargestMap)
    fail(error(ErrorKind::does_not_fit, "more than {} variables", kLargestMap));
  else
    values_.emplace_back(name, std::move(value));
}

Evaluator::Deeper::Deeper(Evaluator& evaluator, int line) : evaluator_(evaluator) {
  evaluator_.line_ = line;
  if (++evaluator_.depth_ > kDeepest) evaluator_.too_much("nested too deeply");
  if (++evaluator_.steps_ > kMostSteps) evaluator_.too_much("too many steps");
}

void Evaluator::too_much(const char* what) { fail(error(ErrorKind::does_not_fit, "{}", what)); }
void Evaluator::wrong(const std::string& what) { fail(error(ErrorKind::invalid, "{}", what)); }

const Value* Evaluator::find(std::string_view name) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    if (const Value* found = scope->find(name)) return found;
  }
  return nullptr;
}

void Evaluator::count(std::size_t steps) {
  steps_ += static_cast<std::int64_t>(std::min(steps, std::size_t{1} << 40));
  if (steps_ > kMostSteps) too_much("too many steps");
}

const Value& Evaluator::charged(const Value& value, int depth) {
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

Value Evaluator::made(Value value) {
  charged(value);
  return value;
}

const Value& Evaluator::glanced(const Value& value) {
  if (value.is_string()) count(value.text().size() / 64);
  if (value.list() != nullptr) count(value.list()->size());
  if (value.map() != nullptr) count(value.map()->size());
  return value;
}

const Value& Evaluator::glanced_text(const Value& value) {
  if (value.is_string()) count(value.text().size() / 64);
  return value;
}

void Evaluator::append(std::string& out, std::string_view text) {
  if (out.size() + text.size() > kLargestText) too_much("the text becomes too large");
  count(text.size() / 64);
  out += text;
}

Value Evaluator::value_of(const ExprPtr& e) { return value_of(*e); }

Value Evaluator::value_of(const Expr& e) {
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

Arguments Evaluator::arguments_of(const Expr& e) {
  Arguments arguments;
  for (std::size_t i = 1; i < e.parts.size(); ++i) arguments.positional.push_back(made(value_of(e.parts[i])));
  for (const auto& [name, value] : e.named) arguments.named.emplace_back(name, made(value_of(value)));
  return arguments;
}

Value Evaluator::item_of(const Value& whole, const Value& key, const std::string& attribute) {
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

Value Evaluator::slice(const Expr& e) {
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
  for (std::int64_t i = begin; by > 0 ? i < end : i > end; i += by) taken.push_back(items[static_cast<std::size_t>(i)]);
  if (whole.is_string()) return apply_filter("join", taken, {});
  return whole.is_tuple() ? Value::tuple(std::move(taken)) : Value(std::move(taken));
}

Value Evaluator::call(const Expr& e) {
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

Value Evaluator::unary(const Expr& e) {
  const Value value = value_of(e.parts[0]);
  if (e.name == "not") return !value.truth();
  if (!value.is_number()) wrong(fmt::format("'{}' of {}", e.name, value.type_name()));
  if (e.name == "+") return value;
  return value.is<double>() ? Value(-value.number()) : Value(wrapping(0, value.integer(), '-'));
}

std::int64_t Evaluator::wrapping(std::int64_t a, std::int64_t b, char op) {
  std::int64_t result = 0;
  const bool over = op == '+'   ? __builtin_add_overflow(a, b, &result)
                    : op == '-' ? __builtin_sub_overflow(a, b, &result)
                                : __builtin_mul_overflow(a, b, &result);
  if (over) wrong("a number is too large");
  return result;
}

Value Evaluator::binary(const Expr& e) {
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

void Evaluator::check_marks(const Expr& e, const Value& a, const Value& b) {
  const auto marked = [](const ExprPtr& part) {
    return part->kind == Expr::Kind::filter && (part->name == "safe" || part->name == "escape" || part->name == "e");
  };
  const bool first = marked(e.parts[0]), second = marked(e.parts[1]);
  if (first == second) return;
  if ((first ? b : a).shown().find_first_of("&<>\"'") != std::string::npos)
    fail(error(ErrorKind::unsupported, "HTML in a text that is joined with one through '{}' is not supported",
               e.parts[first ? 0 : 1]->name));
}

Value Evaluator::concatenated(std::string a, const std::string& b) {
  append(a, b);
  count(a.size() / 64);
  return a;
}

Value Evaluator::arithmetic(const std::string& op, const Value& a, const Value& b) {
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

}  // namespace systole::chat
