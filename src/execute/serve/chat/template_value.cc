#include "execute/serve/chat/template_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ground/base/error.h"
#include "ground/base/utf8.h"

namespace systole::chat {
namespace {

std::string float_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string text = fmt::format("{}", value);
  return text.find_first_of(".e") == text.npos ? text + ".0" : text;
}

std::string quoted(const std::string& text) {
  const char quote = text.find('\'') != text.npos && text.find('"') == text.npos ? '"' : '\'';
  std::string result(1, quote);
  for (const char c : text) {
    if (c == quote || c == '\\')
      result += {'\\', c};
    else if (c == '\n')
      result += "\\n";
    else if (c == '\t')
      result += "\\t";
    else if (c == '\r')
      result += "\\r";
    else if ((c >= 0 && c < ' ') || c == 0x7F)
      result += fmt::format("\\x{:02x}", static_cast<int>(c));
    else
      result += c;
  }
  return result + quote;
}

}  // namespace

Value Value::undefined(std::string name) {
  Value value;
  value.value_ = Undefined{std::move(name)};
  return value;
}

Value Value::from(const Node& node) {
  switch (node.kind()) {
    case NodeKind::null: return {};
    case NodeKind::boolean: return node.text() == "true";
    case NodeKind::number: {
      const Result<std::int64_t> whole = node.as_int();
      if (whole.ok() && node.text().find_first_of(".eE") == std::string::npos) return *whole;
      const Result<double> number = node.as_double();
      return number.ok() ? Value(*number) : Value(node.text());
    }
    case NodeKind::string: return node.text();
    case NodeKind::sequence: {
      List list;
      for (const Node& item : node.items()) list.push_back(from(item));
      return list;
    }
    case NodeKind::map: {
      Map map;
      for (const Node::Entry& entry : node.entries()) map.emplace_back(entry.key, from(entry.value));
      return map;
    }
  }
  return {};
}

std::int64_t Value::integer() const { return is<bool>() ? std::get<bool>(value_) : std::get<std::int64_t>(value_); }
double Value::number() const { return is<double>() ? std::get<double>(value_) : static_cast<double>(integer()); }
List* Value::list() const {
  const auto* shared = std::get_if<std::shared_ptr<List>>(&value_);
  return shared == nullptr ? nullptr : shared->get();
}
Map* Value::map() const {
  const auto* shared = std::get_if<std::shared_ptr<Map>>(&value_);
  return shared == nullptr ? nullptr : shared->get();
}
const Function* Value::function() const {
  const auto* shared = std::get_if<std::shared_ptr<Function>>(&value_);
  return shared == nullptr ? nullptr : shared->get();
}

const Value* Value::find(std::string_view key) const {
  if (map() == nullptr) return nullptr;
  for (const auto& [name, value] : *map()) {
    if (name == key) return &value;
  }
  return nullptr;
}

void Value::set(const std::string& key, Value value) {
  if (const Value* found = find(key)) {
    *const_cast<Value*>(found) = std::move(value);
    return;
  }
  map()->emplace_back(key, std::move(value));
}

Value Value::name_space(Map map) {
  Value value(std::move(map));
  value.is_namespace_ = true;
  return value;
}

Value Value::tuple(List list) {
  Value value(std::move(list));
  value.is_tuple_ = true;
  return value;
}

bool Value::truth() const {
  if (is_none() || is_undefined()) return false;
  if (is_number()) return number() != 0;
  if (is_string()) return !text().empty();
  if (list() != nullptr) return !list()->empty();
  if (map() != nullptr) return !map()->empty();
  return true;
}

std::string Value::shown() const {
  if (is_undefined()) return {};
  return is_string() ? text() : repr();
}

std::string Value::repr() const {
  if (is_none() || is_undefined()) return is_none() ? "None" : "Undefined";
  if (is<bool>()) return integer() != 0 ? "True" : "False";
  if (is<std::int64_t>()) return std::to_string(integer());
  if (is<double>()) return float_text(number());
  if (is_string()) return quoted(text());
  std::string result;
  if (list() != nullptr) {
    for (const Value& item : *list()) result += (result.empty() ? "" : ", ") + item.repr();
    if (is_tuple_) return "(" + result + (list()->size() == 1 ? ",)" : ")");
    return "[" + result + "]";
  }
  if (map() != nullptr) {
    for (const auto& [key, value] : *map()) result += (result.empty() ? "" : ", ") + quoted(key) + ": " + value.repr();
    return "{" + result + "}";
  }
  return "<function>";
}

const char* Value::type_name() const {
  if (is_none()) return "none";
  if (is_undefined()) return "undefined";
  if (is<bool>()) return "a truth value";
  if (is_number()) return "a number";
  if (is_string()) return "a text";
  if (list() != nullptr) return "a list";
  return map() != nullptr ? "a map" : "a function";
}

bool operator==(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number())
    return a.is<double>() || b.is<double>() ? a.number() == b.number() : a.integer() == b.integer();
  if (a.is_string() && b.is_string()) return a.text() == b.text();
  if (a.list() != nullptr && b.list() != nullptr) return a.is_tuple_ == b.is_tuple_ && *a.list() == *b.list();
  if (a.map() != nullptr && b.map() != nullptr) {
    if (a.map()->size() != b.map()->size()) return false;
    for (std::size_t i = 0; i < a.map()->size(); ++i) {
      const auto& [key, value] = (*a.map())[i];
      const Value* other = (*b.map())[i].first == key ? &(*b.map())[i].second : b.find(key);
      if (other == nullptr || !(value == *other)) return false;
    }
    return true;
  }
  return (a.is_none() && b.is_none()) || (a.is_undefined() && b.is_undefined()) ||
         (a.function() != nullptr && a.function() == b.function());
}

const Value* Arguments::find(std::size_t position, std::string_view name) const {
  if (position < positional.size()) return &positional[position];
  for (const auto& [key, value] : named) {
    if (key == name) return &value;
  }
  return nullptr;
}

namespace {

class JsonWriter {
 public:
  explicit JsonWriter(const JsonStyle& style) : style_(style) {}

  void write(const Value& value, int level) {
    if (out.size() > style_.largest) fail(error(ErrorKind::does_not_fit, "a text becomes too large"));
    if (value.is_none()) {
      out += "null";
    } else if (value.is<bool>()) {
      out += value.truth() ? "true" : "false";
    } else if (value.is<double>()) {
      const double number = value.number();
      out += std::isnan(number) ? "NaN" : std::isinf(number) ? (number < 0 ? "-Infinity" : "Infinity") : value.repr();
    } else if (value.is_number()) {
      out += value.repr();
    } else if (value.is_string()) {
      write_text(value.text());
    } else if (const List* list = value.list()) {
      write_list(*list, level);
    } else if (value.map() != nullptr && !value.is_namespace()) {
      write_map(*value.map(), level);
    } else {
      fail(error(ErrorKind::invalid, "{} has no JSON", value.type_name()));
    }
  }

  std::string out;

 private:
  void line(int level) {
    if (style_.indent >= 0) out += "\n" + std::string(static_cast<std::size_t>(style_.indent * level), ' ');
  }
  void next() { out += style_.between_items; }
  void write_list(const List& list, int level) {
    out += "[";
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (i > 0) next();
      line(level + 1);
      write(list[i], level + 1);
    }
    if (!list.empty()) line(level);
    out += "]";
  }
  void write_map(Map map, int level) {
    if (style_.sorted) std::ranges::stable_sort(map, {}, &Map::value_type::first);
    out += "{";
    for (std::size_t i = 0; i < map.size(); ++i) {
      if (i > 0) next();
      line(level + 1);
      write_text(map[i].first);
      out += style_.after_key;
      write(map[i].second, level + 1);
    }
    if (!map.empty()) line(level);
    out += "}";
  }
  void write_text(std::string_view text) {
    out += '"';
    while (!text.empty()) {
      const std::size_t length = std::max<std::size_t>(utf8_length(text), 1);
      const char c = text[0];
      if (length > 1 && style_.ascii)
        escape(text.substr(0, length));
      else if (length > 1)
        out += text.substr(0, length);
      else if (c == '"' || c == '\\')
        out += {'\\', c};
      else if (const std::size_t named = std::string_view("\n\r\t\b\f").find(c); named != std::string_view::npos)
        out += {'\\', "nrtbf"[named]};
      else if (c >= 0 && c < ' ')
        out += fmt::format("\\u{:04x}", static_cast<int>(c));
      else
        out += c;
      text.remove_prefix(length);
    }
    out += '"';
  }
  // A character outside ASCII, as one or two UTF-16 units.
  void escape(std::string_view character) {
    unsigned code = static_cast<unsigned char>(character[0]) & (0xFFU >> (character.size() + 1));
    for (const char c : character.substr(1)) code = code << 6 | (static_cast<unsigned char>(c) & 0x3FU);
    if (code < 0x10000)
      out += fmt::format("\\u{:04x}", code);
    else
      out += fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + ((code - 0x10000) >> 10), 0xDC00 + ((code - 0x10000) & 0x3FF));
  }

  const JsonStyle& style_;
};

}  // namespace

std::string to_json_text(const Value& value, const JsonStyle& style) {
  JsonWriter writer(style);
  writer.write(value, 0);
  return std::move(writer.out);
}

}  // namespace systole::chat
