#pragma once
// A value of a field as filters compare it (record_filter.h), and one comparison, which a format may use to pass over
// records unread.

#include <cstdint>
#include <optional>
#include <string>

namespace systole {

struct FieldValue {
  enum class Kind { null, boolean, number, text };  // null: also absent; objects and lists count as text, their JSON
  Kind kind = Kind::null;
  bool boolean = false;
  double number = 0;
  std::optional<std::int64_t> integer = {};  // of a number that is one; `number` is it, rounded
  std::string text = {};
};

struct FieldComparison {
  enum class Op { equal, less, at_most, more, at_least };
  std::string field;
  Op op = Op::equal;
  FieldValue value;
};

}  // namespace systole
