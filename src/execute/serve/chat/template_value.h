#pragma once
// A value of a chat template: what Python has there, without classes. Lists, maps and namespaces are shared, as in
// Python; everything else is copied. A text may hold bytes that are no UTF-8; they are single characters.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ground/base/document.h"

namespace systole::chat {

// The largest text or list that a template may make.
constexpr std::size_t kLargestText = std::size_t{8} << 20;
constexpr std::size_t kLargestList = std::size_t{1} << 20;
constexpr std::size_t kLargestMap = 2000;  // that a template makes: keys are searched in order

class Value;
using List = std::vector<Value>;
using Map = std::vector<std::pair<std::string, Value>>;  // in the order of insertion; keys are unique
struct Arguments;
using Function = std::function<Value(const Arguments&)>;

struct Undefined {
  std::string name;  // for messages
};

class Value {
 public:
  Value() = default;  // none
  Value(bool value) : value_(value) {}
  Value(std::int64_t value) : value_(value) {}
  Value(int value) : value_(std::int64_t{value}) {}
  Value(double value) : value_(value) {}
  Value(std::string value) : value_(std::move(value)) {}
  Value(std::string_view value) : value_(std::string(value)) {}
  Value(const char* value) : value_(std::string(value)) {}
  Value(List value) : value_(std::make_shared<List>(std::move(value))) {}
  Value(Map value) : value_(std::make_shared<Map>(std::move(value))) {}
  Value(Function value) : value_(std::make_shared<Function>(std::move(value))) {}
  static Value undefined(std::string name);
  static Value from(const Node& node);  // numbers with a point or an exponent are doubles

  template <typename T>
  bool is() const {
    return std::holds_alternative<T>(value_);
  }
  bool is_none() const { return is<std::monostate>(); }
  bool is_undefined() const { return is<Undefined>(); }
  bool is_number() const { return is<bool>() || is<std::int64_t>() || is<double>(); }
  bool is_string() const { return is<std::string>(); }
  const std::string& text() const { return std::get<std::string>(value_); }
  std::int64_t integer() const;  // of a bool or an integer
  double number() const;         // of any number
  List* list() const;            // null if it is none
  Map* map() const;              // null if it is none
  const Function* function() const;
  const Value* find(std::string_view key) const;  // of a map; null if absent or no map
  void set(const std::string& key, Value value);  // of a map

  // A namespace is a map whose entries a template may set; nothing else changes once it is made.
  static Value name_space(Map map);
  bool is_namespace() const { return is_namespace_; }
  // A list that is printed as a tuple and equals no list.
  static Value tuple(List list);
  bool is_tuple() const { return is_tuple_; }

  bool truth() const;
  std::string shown() const;  // as {{ value }} prints it
  std::string repr() const;   // as Python's repr
  const char* type_name() const;
  friend bool operator==(const Value& a, const Value& b);

 private:
  std::variant<std::monostate, Undefined, bool, std::int64_t, double, std::string, std::shared_ptr<List>,
               std::shared_ptr<Map>, std::shared_ptr<Function>>
      value_;
  bool is_namespace_ = false, is_tuple_ = false;
};

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
  // The argument at this position or of this name; null if there is none.
  const Value* find(std::size_t position, std::string_view name) const;
};

// As Python's json.dumps has them.
struct JsonStyle {
  int indent = -1;  // < 0: one line
  std::string between_items = ", ", after_key = ": ";
  bool ascii = false, sorted = false;
  std::size_t largest = std::size_t{1} << 30;  // bytes
};
// Throws Failure: invalid (an undefined value or a function), does_not_fit.
std::string to_json_text(const Value& value, const JsonStyle& style = {});

}  // namespace systole::chat
