// The filters of chat templates.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>

#include "execute/serve/chat/template_arguments.h"
#include "execute/serve/chat/template_functions.h"
#include "execute/serve/chat/template_text.h"

namespace systole::chat {
namespace {

constexpr std::size_t kMostUnique = 2000;  // items that `unique` compares with each other

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

}  // namespace

Value apply_filter(const std::string& name, const Value& value, const Arguments& arguments) {
  const auto found = filters().find(name);
  if (found == filters().end()) wrong(fmt::format("the filter '{}' is not supported", name), ErrorKind::unsupported);
  return found->second(value, arguments);
}

}  // namespace systole::chat
