#include "execute/serve/chat/template_functions.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <map>
#include <optional>

#include "execute/serve/chat/template_arguments.h"
#include "execute/serve/chat/template_text.h"
#include "ground/base/error.h"

namespace systole::chat {
namespace {

std::optional<std::string> separator_of(const Arguments& arguments) {
  const Value* value = arguments.find(0, "sep");
  if (value == nullptr || value->is_none()) return std::nullopt;
  return text_of(*value, "split by a separator");
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
