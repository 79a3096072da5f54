#pragma once
// A value of a column, and a row's cell: one value, none, or a list of them.

#include <cstdint>
#include <span>
#include <string_view>

namespace systole::parquet {

struct Value {
  enum class Kind : std::uint8_t { null, integer, real, bytes };
  Kind kind = Kind::null;
  union {
    std::int64_t integer = 0;  // BOOLEAN, INT32, INT64; the bits of an unsigned one
    double real;               // FLOAT, DOUBLE
  };
  std::string_view bytes;  // BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY; borrowed

  static Value of(std::int64_t value) {
    Value made;
    made.kind = Kind::integer;
    made.integer = value;
    return made;
  }
  static Value of(double value) {
    Value made;
    made.kind = Kind::real;
    made.real = value;
    return made;
  }
  static Value of(std::string_view value) {
    Value made;
    made.kind = Kind::bytes;
    made.bytes = value;
    return made;
  }
  bool is_null() const { return kind == Kind::null; }
};

struct Cell {
  bool null = true;               // no value, or no list
  std::span<const Value> values;  // of a flat column: one, unless null. Valid until the next row.
};

}  // namespace systole::parquet
