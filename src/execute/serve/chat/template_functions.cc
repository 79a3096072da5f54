#include "execute/serve/chat/template_functions.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <map>
#include <optional>

#include "execute/serve/chat/template_text.h"
#include "ground/base/error.h"

namespace systole::chat {
namespace {

constexpr std::size_t kMostUnique = 2000;  // items that `unique` compares with each other

[[noreturn]] void wrong(const std::string& what, ErrorKind kind = ErrorKind::invalid) { fail(error(kind, "{}", what)); }

const std::string& text_of(const Value& value, std::string_view what) {
  if (!value.is_string()) wrong(fmt::format("{} of {}", what, value.type_name()));
  return value.text();
}
// What a loop goes over: the items of a list, the keys of a map, the characters of a text.
List items_of(const Value& value, std::string_view what) {
  List items;
  if (value.list() != nullptr) return *value.list();
  if (const Map* map = value.map()) {
    for (const auto& [key, entry] : *map) items.emplace_back(key);
  } else if (value.is_string()) {
    if (value.text().size() > kLargestList) wrong("a list becomes too large", ErrorKind::does_not_fit);
    for (const std::string_view character : characters(value.text())) items.emplace_back(character);
  } else if (!value.is_undefined()) {
    wrong(fmt::format("{} of {}", what, value.type_name()));
  }
  return items;
}

std::optional<std::string> set_of(const Arguments& arguments) {
  const Value* value = arguments.find(0, "chars");
  if (value == nullptr || value->is_none()) return std::nullopt;
  if (value->is_string() && value->text().size() > 1000) wrong("strip of too many characters", ErrorKind::does_not_fit);
  return text_of(*value, "strip");
}
std::optional<std::string> separator_of(const Arguments& arguments) {
  const Value* value = arguments.find(0, "sep");
  if (value == nullptr || value->is_none()) return std::nullopt;
  return text_of(*value, "split by a separator");
}

std::string joined(const List& items, const std::string& by) {
  std::string result;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) result += by;
    result += items[i].shown();
    if (result.size() > kLargestText) wrong("a text becomes too large", ErrorKind::does_not_fit);
  }
  return result;
}

std::int64_t integer_argument(const Arguments& arguments, std::size_t at, std::string_view name,
                              std::int64_t otherwise) {
  const Value* value = arguments.find(at, name);
  if (value == nullptr || value->is_none()) return otherwise;
  if (!value->is<bool>() && !value->is<std::int64_t>())
    wrong(fmt::format("{} is {}, no whole number", name, value->type_name()));
  return value->integer();
}
std::string text_argument(const Arguments& arguments, std::size_t at, std::string_view name, std::string otherwise) {
  const Value* value = arguments.find(at, name);
  return value == nullptr || value->is_none() ? otherwise : text_of(*value, name);
}

Value attribute_of(const Value& item, const std::string& path) {
  const Value* found = &item;
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t dot = std::min(path.find('.', at), path.size());
    found = found->find(path.substr(at, dot - at));
    if (found == nullptr && dot < path.size()) wrong(fmt::format("'{}' of what is undefined", path.substr(dot + 1)));
    if (found == nullptr) return Value::undefined(path);
    at = dot + 1;
  }
  return *found;
}

Value mapped(const Value& value, const Arguments& arguments) {
  List result;
  if (!value.truth()) return result;
  if (const Value* attribute = arguments.find(arguments.positional.size(), "attribute")) {
    const Value* otherwise = arguments.find(arguments.positional.size(), "default");
    for (const Value& item : items_of(value, "map")) {
      Value found = attribute_of(item, text_of(*attribute, "attribute"));
      result.push_back(found.is_undefined() && otherwise != nullptr ? *otherwise : std::move(found));
    }
    return result;
  }
  if (arguments.positional.empty()) wrong("map without a filter or an attribute");
  const Arguments rest{{arguments.positional.begin() + 1, arguments.positional.end()}, arguments.named};
  for (const Value& item : items_of(value, "map"))
    result.push_back(apply_filter(text_of(arguments.positional[0], "map by a filter"), item, rest));
  return result;
}

// select, reject (a test of the item), selectattr, rejectattr (of an attribute).
Value selected(const Value& value, const Arguments& arguments, bool of_attribute, bool keeps) {
  const std::size_t first = of_attribute ? 1 : 0;
  if (of_attribute && arguments.positional.empty()) wrong("selectattr without an attribute");
  List result;
  if (!value.truth()) return result;
  for (const Value& item : items_of(value, "select")) {
    const Value tested = of_attribute ? attribute_of(item, text_of(arguments.positional[0], "attribute")) : item;
    bool holds = tested.truth();
    if (arguments.positional.size() > first) {
      const Arguments rest{
          {arguments.positional.begin() + static_cast<std::ptrdiff_t>(first) + 1, arguments.positional.end()}, {}};
      holds = apply_test(text_of(arguments.positional[first], "a test"), tested, rest);
    }
    if (holds == keeps) result.push_back(item);
  }
  return result;
}

Value length_of(const Value& value) {
  if (value.is_string()) return count_of_characters(value.text());
  if (value.list() != nullptr) return static_cast<std::int64_t>(value.list()->size());
  if (value.map() != nullptr) return static_cast<std::int64_t>(value.map()->size());
  if (value.is_undefined()) return 0;
  wrong(fmt::format("length of {}", value.type_name()));
}

Value pairs_of(const Value& value, std::string_view what) {
  List pairs;
  if (value.is_undefined()) return pairs;
  if (value.map() == nullptr) wrong(fmt::format("{} of {}", what, value.type_name()));
  for (const auto& [key, entry] : *value.map()) pairs.push_back(Value::tuple({Value(key), entry}));
  return pairs;
}

Value sorted(const Value& value, const Arguments& arguments) {
  List items = items_of(value, "sort");
  const Value* reverse = arguments.find(0, "reverse");
  const Value* attribute = arguments.find(2, "attribute");
  const auto key = [&](const Value& item) {
    Value found =
        attribute == nullptr || attribute->is_none() ? item : attribute_of(item, text_of(*attribute, "attribute"));
    return found.is_string() ? Value(cased(found.text(), false)) : found;
  };
  const bool down = reverse != nullptr && reverse->truth();
  for (std::size_t i = 1; i < items.size(); ++i)
    (void)compare(key(items[0]), key(items[i]));  // refuses what has no order
  std::ranges::stable_sort(items, [&](const Value& a, const Value& b) {
    return down ? compare(key(a), key(b)) > 0 : compare(key(a), key(b)) < 0;
  });
  return items;
}

// The smallest item (sign < 0) or the largest.
Value extreme(const Value& value, const Arguments& arguments, int sign) {
  if (!arguments.positional.empty() || !arguments.named.empty())
    wrong("min and max with arguments are not supported", ErrorKind::unsupported);
  const auto key = [](const Value& item) { return item.is_string() ? Value(cased(item.text(), false)) : item; };
  const List items = items_of(value, "min or max");
  const Value* best = nullptr;
  for (const Value& item : items) {
    if (best == nullptr || compare(key(item), key(*best)) * sign > 0) best = &item;
  }
  return best == nullptr ? Value::undefined("min") : *best;
}

// As str.format, of places without a form: {}, {0}, {name}.
std::string formatted(const std::string& form, const Arguments& arguments) {
  std::string result;
  std::size_t next = 0;
  for (std::size_t i = 0; i < form.size(); ++i) {
    if (result.size() > kLargestText) wrong("a text becomes too large", ErrorKind::does_not_fit);
    const bool twice = i + 1 < form.size() && form[i + 1] == form[i];
    if (form[i] != '{' && form[i] != '}') {
      result += form[i];
    } else if (twice) {
      result += form[i++];
    } else {
      const std::size_t end = form[i] == '{' ? form.find('}', i) : form.npos;
      if (end == form.npos) wrong("a brace of format has no other");
      const std::string name = form.substr(i + 1, end - i - 1);
      if (name.find_first_of(".[!:{") != name.npos)
        wrong(fmt::format("'{{{}}}' in format is not supported", name), ErrorKind::unsupported);
      const bool number = !name.empty() && name.size() < 4 && name.find_first_not_of("0123456789") == name.npos;
      const std::size_t at = name.empty() ? next++
                             : number     ? static_cast<std::size_t>(std::stoi(name))
                                          : arguments.positional.size();
      const Value* value = arguments.find(at, name);
      if (value == nullptr) wrong(fmt::format("format without a value for '{{{}}}'", name));
      result += value->shown();
      i = end;
    }
  }
  return result;
}

Value to_integer(const Value& value, std::int64_t otherwise) {
  if (value.is<double>()) {
    const double number = value.number();
    return std::abs(number) < 0x1p62 ? Value(static_cast<std::int64_t>(number)) : Value(otherwise);
  }
  if (value.is_number()) return value.integer();
  if (!value.is_string()) return otherwise;
  const std::optional<double> number = number_in(value.text());
  if (!number || !(std::abs(*number) < 0x1p62)) return otherwise;
  return static_cast<std::int64_t>(*number);
}

using Filter = Value (*)(const Value&, const Arguments&);

const std::map<std::string, Filter, std::less<>>& filters() {
  static const std::map<std::string, Filter, std::less<>> all{
      {"abs",
       [](const Value& v, const Arguments&) -> Value {
         if (!v.is_number()) wrong(fmt::format("abs of {}", v.type_name()));
         return v.is<double>() ? Value(std::abs(v.number()))
                               : Value(std::max(v.integer(), -std::max(v.integer(), -INT64_MAX)));
       }},
      {"capitalize", [](const Value& v, const Arguments&) -> Value { return capitalized(v.shown()); }},
      {"count", [](const Value& v, const Arguments&) { return length_of(v); }},
      {"d", [](const Value& v, const Arguments& a) { return apply_filter("default", v, a); }},
      {"default",
       [](const Value& v, const Arguments& a) -> Value {
         const Value* otherwise = a.find(0, "default_value");
         const Value* of_false = a.find(1, "boolean");
         const bool replaces = v.is_undefined() || (of_false != nullptr && of_false->truth() && !v.truth());
         return !replaces ? v : otherwise == nullptr ? Value("") : *otherwise;
       }},
      {"dictsort",
       [](const Value& v, const Arguments& a) -> Value {
         if (!a.positional.empty() || !a.named.empty())
           wrong("dictsort with arguments is not supported", ErrorKind::unsupported);
         List pairs = *pairs_of(v, "dictsort").list();
         std::ranges::stable_sort(pairs, [](const Value& x, const Value& y) {
           return cased((*x.list())[0].text(), false) < cased((*y.list())[0].text(), false);
         });
         return pairs;
       }},
      {"e", [](const Value& v, const Arguments&) -> Value { return escaped(v.shown()); }},
      {"escape", [](const Value& v, const Arguments&) -> Value { return escaped(v.shown()); }},
      {"first",
       [](const Value& v, const Arguments&) -> Value {
         const List items = items_of(v, "first");
         return items.empty() ? Value::undefined("first") : items.front();
       }},
      {"float",
       [](const Value& v, const Arguments& a) -> Value {
         const Value* otherwise = a.find(0, "default");
         if (v.is_number()) return v.number();
         const std::optional<double> number = v.is_string() ? number_in(v.text()) : std::nullopt;
         if (number) return *number;
         return otherwise == nullptr ? Value(0.0) : *otherwise;
       }},
      {"indent",
       [](const Value& v, const Arguments& a) -> Value {
         const Value *first = a.find(1, "first"), *blank = a.find(2, "blank");
         return indented(
             v.shown(), static_cast<std::size_t>(std::clamp<std::int64_t>(integer_argument(a, 0, "width", 4), 0, 1000)),
             first != nullptr && first->truth(), blank != nullptr && blank->truth());
       }},
      {"int", [](const Value& v, const Arguments& a) { return to_integer(v, integer_argument(a, 0, "default", 0)); }},
      {"items", [](const Value& v, const Arguments&) { return pairs_of(v, "items"); }},
      {"join",
       [](const Value& v, const Arguments& a) -> Value {
         const Value* attribute = a.find(1, "attribute");
         List items = items_of(v, "join");
         if (attribute != nullptr) {
           for (Value& item : items) item = attribute_of(item, text_of(*attribute, "attribute"));
         }
         return joined(items, text_argument(a, 0, "d", ""));
       }},
      {"last",
       [](const Value& v, const Arguments&) -> Value {
         const List items = items_of(v, "last");
         return items.empty() ? Value::undefined("last") : items.back();
       }},
      {"length", [](const Value& v, const Arguments&) { return length_of(v); }},
      {"list", [](const Value& v, const Arguments&) -> Value { return items_of(v, "list"); }},
      {"lower", [](const Value& v, const Arguments&) -> Value { return cased(v.shown(), false); }},
      {"map", mapped},
      {"max", [](const Value& v, const Arguments& a) { return extreme(v, a, 1); }},
      {"min", [](const Value& v, const Arguments& a) { return extreme(v, a, -1); }},
      {"reject", [](const Value& v, const Arguments& a) { return selected(v, a, false, false); }},
      {"rejectattr", [](const Value& v, const Arguments& a) { return selected(v, a, true, false); }},
      {"replace",
       [](const Value& v, const Arguments& a) -> Value {
         return replaced(v.shown(), text_argument(a, 0, "old", ""), text_argument(a, 1, "new", ""),
                         integer_argument(a, 2, "count", -1));
       }},
      {"reverse",
       [](const Value& v, const Arguments&) -> Value {
         List items = items_of(v, "reverse");
         std::ranges::reverse(items);
         return v.is_string() ? Value(joined(items, "")) : Value(std::move(items));
       }},
      {"round",
       [](const Value& v, const Arguments& a) -> Value {
         if (!v.is_number()) wrong(fmt::format("round of {}", v.type_name()));
         const double scale = std::pow(
             10.0, static_cast<double>(std::clamp<std::int64_t>(integer_argument(a, 0, "precision", 0), -15, 15)));
         const std::string method = text_argument(a, 1, "method", "common");
         const double scaled = v.number() * scale;
         return (method == "ceil"    ? std::ceil(scaled)
                 : method == "floor" ? std::floor(scaled)
                                     : std::nearbyint(scaled)) /
                scale;
       }},
      {"safe", [](const Value& v, const Arguments&) { return v; }},
      {"select", [](const Value& v, const Arguments& a) { return selected(v, a, false, true); }},
      {"selectattr", [](const Value& v, const Arguments& a) { return selected(v, a, true, true); }},
      {"sort", sorted},
      {"string", [](const Value& v, const Arguments&) -> Value { return v.shown(); }},
      {"sum",
       [](const Value& v, const Arguments& a) -> Value {
         const Value* attribute = a.find(0, "attribute");
         double real = 0;
         std::int64_t whole = 0;
         bool is_whole = true;
         for (const Value& each : items_of(v, "sum")) {
           const Value item = attribute == nullptr ? each : attribute_of(each, text_of(*attribute, "attribute"));
           if (!item.is_number()) wrong(fmt::format("sum with {}", item.type_name()));
           real += item.number();
           if (item.is<double>())
             is_whole = false;
           else if (__builtin_add_overflow(whole, item.integer(), &whole))
             wrong("a sum is too large");
         }
         return is_whole ? Value(whole) : Value(real);
       }},
      {"title", [](const Value& v, const Arguments&) -> Value { return titled(v.shown(), true); }},
      {"tojson",
       [](const Value& v, const Arguments& a) -> Value {
         // Its arguments are those that transformers gives it.
         const Value *ascii = a.find(0, "ensure_ascii"), *separators = a.find(2, "separators"),
                     *sort = a.find(3, "sort_keys");
         JsonStyle style{
             .indent = static_cast<int>(std::clamp<std::int64_t>(integer_argument(a, 1, "indent", -1), -1, 100)),
             .ascii = ascii != nullptr && ascii->truth(),
             .sorted = sort != nullptr && sort->truth(),
             .largest = kLargestText};
         if (style.indent >= 0) style.between_items = ",";
         if (separators != nullptr && !separators->is_none()) {
           const List* two = separators->list();
           if (two == nullptr || two->size() != 2) wrong("separators are two texts");
           style.between_items = text_of((*two)[0], "separators");
           style.after_key = text_of((*two)[1], "separators");
         }
         return to_json_text(v, style);
       }},
      {"trim", [](const Value& v, const Arguments& a) -> Value { return stripped(v.shown(), set_of(a), true, true); }},
      {"unique",
       [](const Value& v, const Arguments&) -> Value {
         List result;
         if (v.list() != nullptr && v.list()->size() > kMostUnique)
           wrong("unique of a large list", ErrorKind::does_not_fit);
         for (const Value& item : items_of(v, "unique")) {
           if (std::ranges::find(result, item) == result.end()) result.push_back(item);
         }
         return result;
       }},
      {"upper", [](const Value& v, const Arguments&) -> Value { return cased(v.shown(), true); }},
  };
  return all;
}

using Method = Value (*)(const Value&, const Arguments&);

const std::map<std::string, Method, std::less<>>& text_methods() {
  static const std::map<std::string, Method, std::less<>> all{
      {"capitalize", [](const Value& v, const Arguments&) -> Value { return capitalized(v.text()); }},
      {"count",
       [](const Value& v, const Arguments& a) -> Value {
         const std::string part = text_argument(a, 0, "sub", "");
         if (part.empty()) wrong("count of an empty text");
         std::int64_t n = 0;
         for (std::size_t at = find_text(v.text(), part); at != std::string::npos;
              at = find_text(v.text(), part, at + part.size()))
           ++n;
         return n;
       }},
      {"endswith",
       [](const Value& v, const Arguments& a) -> Value {
         if (const Value* any = a.find(0, "suffix"); any != nullptr && any->list() != nullptr)
           return std::ranges::any_of(*any->list(),
                                      [&](const Value& x) { return v.text().ends_with(text_of(x, "endswith")); });
         return v.text().ends_with(text_argument(a, 0, "suffix", ""));
       }},
      {"find",
       [](const Value& v, const Arguments& a) -> Value {
         const std::size_t found = find_text(v.text(), text_argument(a, 0, "sub", ""));
         if (found == std::string::npos) return -1;
         return count_of_characters(std::string_view(v.text()).substr(0, found));
       }},
      {"format", [](const Value& v, const Arguments& a) -> Value { return formatted(v.text(), a); }},
      {"isdigit",
       [](const Value& v, const Arguments&) -> Value {
         return !v.text().empty() && v.text().find_first_not_of("0123456789") == std::string::npos;
       }},
      {"join",
       [](const Value& v, const Arguments& a) -> Value {
         if (a.positional.empty()) wrong("join of nothing");
         const List items = items_of(a.positional[0], "join");
         for (const Value& item : items) text_of(item, "join");
         return joined(items, v.text());
       }},
      {"lower", [](const Value& v, const Arguments&) -> Value { return cased(v.text(), false); }},
      {"lstrip",
       [](const Value& v, const Arguments& a) -> Value { return stripped(v.text(), set_of(a), true, false); }},
      {"replace",
       [](const Value& v, const Arguments& a) -> Value {
         return replaced(v.text(), text_argument(a, 0, "old", ""), text_argument(a, 1, "new", ""),
                         integer_argument(a, 2, "count", -1));
       }},
      {"rsplit",
       [](const Value& v, const Arguments& a) -> Value {
         return split(v.text(), separator_of(a), integer_argument(a, 1, "maxsplit", -1), true);
       }},
      {"rstrip",
       [](const Value& v, const Arguments& a) -> Value { return stripped(v.text(), set_of(a), false, true); }},
      {"split",
       [](const Value& v, const Arguments& a) -> Value {
         return split(v.text(), separator_of(a), integer_argument(a, 1, "maxsplit", -1), false);
       }},
      {"startswith",
       [](const Value& v, const Arguments& a) -> Value {
         if (const Value* any = a.find(0, "prefix"); any != nullptr && any->list() != nullptr)
           return std::ranges::any_of(*any->list(),
                                      [&](const Value& x) { return v.text().starts_with(text_of(x, "startswith")); });
         return v.text().starts_with(text_argument(a, 0, "prefix", ""));
       }},
      {"strip", [](const Value& v, const Arguments& a) -> Value { return stripped(v.text(), set_of(a), true, true); }},
      {"title", [](const Value& v, const Arguments&) -> Value { return titled(v.text(), false); }},
      {"upper", [](const Value& v, const Arguments&) -> Value { return cased(v.text(), true); }},
  };
  return all;
}

const std::map<std::string, Method, std::less<>>& map_methods() {
  static const std::map<std::string, Method, std::less<>> all{
      {"get",
       [](const Value& v, const Arguments& a) -> Value {
         if (a.positional.empty()) wrong("get without a key");
         const Value* found = a.positional[0].is_string() ? v.find(a.positional[0].text()) : nullptr;
         const Value* otherwise = a.find(1, "default");
         return found != nullptr ? *found : otherwise != nullptr ? *otherwise : Value();
       }},
      {"items", [](const Value& v, const Arguments&) { return pairs_of(v, "items"); }},
      {"keys", [](const Value& v, const Arguments&) -> Value { return items_of(v, "keys"); }},
      {"values",
       [](const Value& v, const Arguments&) -> Value {
         List values;
         for (const auto& [key, entry] : *v.map()) values.push_back(entry);
         return values;
       }},
  };
  return all;
}

const std::map<std::string, Method, std::less<>>* methods_of(const Value& value) {
  if (value.is_string()) return &text_methods();
  return value.map() != nullptr ? &map_methods() : nullptr;
}

using Test = bool (*)(const Value&, const Arguments&);

const Value& other(const Arguments& arguments) {
  if (arguments.positional.empty()) wrong("a test without a value to compare with");
  return arguments.positional[0];
}
std::int64_t whole(const Value& value) {
  if (!value.is<std::int64_t>()) wrong(fmt::format("{} is no whole number", value.repr()));
  return value.integer();
}

bool divides(std::int64_t divisor, std::int64_t value) {
  if (divisor == 0) wrong("divisibleby 0");
  return divisor == -1 || value % divisor == 0;
}
bool is_same(const Value& a, const Value& b) {
  const bool of_one_kind = a.is<bool>() == b.is<bool>() && a.is<double>() == b.is<double>();
  if (a.list() != nullptr || a.map() != nullptr) return a.list() == b.list() && a.map() == b.map();
  return of_one_kind && a == b;
}

const std::map<std::string, Test, std::less<>>& tests() {
  static const std::map<std::string, Test, std::less<>> all{
      {"boolean", [](const Value& v, const Arguments&) { return v.is<bool>(); }},
      {"callable", [](const Value& v, const Arguments&) { return v.function() != nullptr; }},
      {"defined", [](const Value& v, const Arguments&) { return !v.is_undefined(); }},
      {"divisibleby", [](const Value& v, const Arguments& a) { return divides(whole(other(a)), whole(v)); }},
      {"eq", [](const Value& v, const Arguments& a) { return v == other(a); }},
      {"equalto", [](const Value& v, const Arguments& a) { return v == other(a); }},
      {"even", [](const Value& v, const Arguments&) { return whole(v) % 2 == 0; }},
      {"false", [](const Value& v, const Arguments&) { return v.is<bool>() && !v.truth(); }},
      {"float", [](const Value& v, const Arguments&) { return v.is<double>(); }},
      {"ge", [](const Value& v, const Arguments& a) { return compare(v, other(a)) >= 0; }},
      {"gt", [](const Value& v, const Arguments& a) { return compare(v, other(a)) > 0; }},
      {"in", [](const Value& v, const Arguments& a) { return contains(other(a), v); }},
      {"integer", [](const Value& v, const Arguments&) { return v.is<std::int64_t>(); }},
      {"iterable",
       [](const Value& v, const Arguments&) {
         return v.is_undefined() || v.is_string() || v.list() != nullptr || v.map() != nullptr;
       }},
      {"le", [](const Value& v, const Arguments& a) { return compare(v, other(a)) <= 0; }},
      {"lower", [](const Value& v, const Arguments&) { return v.is_string() && v.text() == cased(v.text(), false); }},
      {"lt", [](const Value& v, const Arguments& a) { return compare(v, other(a)) < 0; }},
      {"mapping", [](const Value& v, const Arguments&) { return v.map() != nullptr; }},
      {"ne", [](const Value& v, const Arguments& a) { return !(v == other(a)); }},
      {"none", [](const Value& v, const Arguments&) { return v.is_none(); }},
      {"number", [](const Value& v, const Arguments&) { return v.is_number(); }},
      {"odd", [](const Value& v, const Arguments&) { return whole(v) % 2 != 0; }},
      {"sameas", [](const Value& v, const Arguments& a) { return is_same(v, other(a)); }},
      {"sequence",
       [](const Value& v, const Arguments&) {
         return v.is_undefined() || v.is_string() || v.list() != nullptr || v.map() != nullptr;
       }},
      {"string", [](const Value& v, const Arguments&) { return v.is_string(); }},
      {"true", [](const Value& v, const Arguments&) { return v.is<bool>() && v.truth(); }},
      {"undefined", [](const Value& v, const Arguments&) { return v.is_undefined(); }},
      {"upper", [](const Value& v, const Arguments&) { return v.is_string() && v.text() == cased(v.text(), true); }},
  };
  return all;
}

// Names that Jinja has twice.
std::string_view plain_name(std::string_view test) {
  static constexpr std::pair<std::string_view, std::string_view> kAlso[] = {
      {"==", "eq"}, {"!=", "ne"}, {"<", "lt"},        {"<=", "le"},
      {">", "gt"},  {">=", "ge"}, {"lessthan", "lt"}, {"greaterthan", "gt"}};
  for (const auto& [also, name] : kAlso) {
    if (test == also) return name;
  }
  return test;
}

}  // namespace

Value apply_filter(const std::string& name, const Value& value, const Arguments& arguments) {
  const auto found = filters().find(name);
  if (found == filters().end()) wrong(fmt::format("the filter '{}' is not supported", name), ErrorKind::unsupported);
  return found->second(value, arguments);
}

bool apply_test(const std::string& name, const Value& value, const Arguments& arguments) {
  const auto found = tests().find(plain_name(name));
  if (found == tests().end()) wrong(fmt::format("the test '{}' is not supported", name), ErrorKind::unsupported);
  return found->second(value, arguments);
}

bool has_method(const Value& value, std::string_view name) {
  if (value.list() != nullptr) return name == "index" || name == "count";
  const auto* methods = methods_of(value);
  return methods != nullptr && methods->contains(name);
}

Value call_method(const Value& value, const std::string& name, const Arguments& arguments) {
  if (const List* list = value.list()) {
    if (arguments.positional.empty()) wrong(fmt::format("{} without a value", name));
    if (name == "count") return static_cast<std::int64_t>(std::ranges::count(*list, arguments.positional[0]));
    const auto found = std::ranges::find(*list, arguments.positional[0]);
    if (found == list->end()) wrong("index of what is not in the list");
    return static_cast<std::int64_t>(found - list->begin());
  }
  return methods_of(value)->find(name)->second(value, arguments);
}

Map global_functions() {
  Map globals;
  globals.emplace_back("range", Function([](const Arguments& a) -> Value {
                         if (a.positional.empty()) wrong("range without an end");
                         const bool one = a.positional.size() == 1;
                         const std::int64_t begin = one ? 0 : whole(a.positional[0]),
                                            end = whole(a.positional[one ? 0 : 1]);
                         const std::int64_t by = integer_argument(a, 2, "step", 1);
                         if (by == 0) wrong("range with a step of 0");
                         List list;
                         for (std::int64_t i = begin; by > 0 ? i < end : i > end;) {
                           if (list.size() >= 100'000) wrong("range of more than 100,000", ErrorKind::does_not_fit);
                           list.emplace_back(i);
                           if (__builtin_add_overflow(i, by, &i)) break;
                         }
                         return list;
                       }));
  const auto map_of = [](const Arguments& a) {
    Value map{Map{}};
    if (a.positional.size() > 1 || (a.positional.size() == 1 && a.positional[0].map() == nullptr))
      wrong("dict of no map");
    if (a.named.size() > kLargestMap) wrong("a map becomes too large", ErrorKind::does_not_fit);
    if (a.positional.size() == 1) map = Value(Map(*a.positional[0].map()));
    for (const auto& [name, value] : a.named) map.set(name, value);
    return map;
  };
  globals.emplace_back("namespace",
                       Function([map_of](const Arguments& a) { return Value::name_space(*map_of(a).map()); }));
  globals.emplace_back("dict", Function(map_of));
  globals.emplace_back(
      "raise_exception", Function([](const Arguments& a) -> Value {
        wrong(a.positional.empty() ? "the template refuses this conversation" : a.positional[0].shown());
      }));
  return globals;
}

Function strftime_of(const std::tm& time) {
  return [time](const Arguments& a) -> Value {
    const std::string form = text_argument(a, 0, "format", "");
    if (form.empty() || form.size() > 200) wrong("strftime_now without a format of at most 200 bytes");
    std::string text(2000, ' ');
    text.resize(std::strftime(text.data(), text.size(), form.c_str(), &time));
    return text;
  };
}

int compare(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number() && !a.is<double>() && !b.is<double>())
    return a.integer() < b.integer() ? -1 : a.integer() > b.integer() ? 1 : 0;
  if (a.is_number() && b.is_number()) return a.number() < b.number() ? -1 : a.number() > b.number() ? 1 : 0;
  if (a.is_string() && b.is_string()) return a.text() < b.text() ? -1 : a.text() > b.text() ? 1 : 0;
  wrong(fmt::format("{} and {} have no order", a.type_name(), b.type_name()));
}

bool contains(const Value& whole, const Value& part) {
  if (whole.is_string()) return find_text(whole.text(), text_of(part, "a search in a text")) != std::string::npos;
  if (whole.list() != nullptr) return std::ranges::find(*whole.list(), part) != whole.list()->end();
  if (whole.map() != nullptr) return part.is_string() && whole.find(part.text()) != nullptr;
  if (whole.is_undefined()) return false;
  wrong(fmt::format("'in' of {}", whole.type_name()));
}

}  // namespace systole::chat
