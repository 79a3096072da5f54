#include "execute/data/formats/parquet/condition.h"

#include <cmath>
#include <compare>
#include <cstring>

namespace systole::parquet {
namespace {

bool is_text(const Column& column) {
  return column.type == Physical::bytes &&
         (column.meaning == Meaning::plain || column.meaning == Meaning::text || column.meaning == Meaning::json);
}

std::partial_ordering order_of_integers(std::int64_t a, const Column& column, const Condition& condition) {
  const bool is_unsigned = column.meaning == Meaning::unsigned_int;
  if (is_unsigned && column.type == Physical::int32) a &= 0xffffffff;
  const double real = is_unsigned ? static_cast<double>(static_cast<std::uint64_t>(a)) : static_cast<double>(a);
  if (const auto* b = std::get_if<double>(&condition.value)) return real <=> *b;
  const std::int64_t b = std::get<std::int64_t>(condition.value);
  if (is_unsigned && a < 0) return std::partial_ordering::greater;  // above every integer that can be written
  return a <=> b;
}

// How a value stands to the condition's. Unordered: not to be compared (NaN).
std::partial_ordering order_of(const Value& value, const Column& column, const Condition& condition) {
  switch (value.kind) {
    case Value::Kind::integer: return order_of_integers(value.integer, column, condition);
    case Value::Kind::real: {
      if (const auto* b = std::get_if<double>(&condition.value)) return value.real <=> *b;
      return value.real <=> static_cast<double>(std::get<std::int64_t>(condition.value));
    }
    case Value::Kind::bytes: return value.bytes.compare(std::get<std::string>(condition.value)) <=> 0;
    default: return std::partial_ordering::unordered;
  }
}

// A bound of the statistics, or null where its bytes are not those of a value.
Value bound_of(const Column& column, std::string_view bytes) {
  const auto number = [&]<typename T>(T value) {
    if (bytes.size() != sizeof(T)) return Value();
    std::memcpy(&value, bytes.data(), sizeof(T));
    if constexpr (std::is_floating_point_v<T>) {
      return std::isnan(value) ? Value() : Value::of(static_cast<double>(value));
    } else {
      return Value::of(static_cast<std::int64_t>(value));
    }
  };
  switch (column.type) {
    case Physical::boolean: return number(std::uint8_t{});
    case Physical::int32: return number(std::int32_t{});
    case Physical::int64: return number(std::int64_t{});
    case Physical::float64: return number(double{});
    case Physical::bytes: return Value::of(bytes);
    default: return {};
  }
}

}  // namespace

std::optional<Condition> condition_of(const FieldComparison& comparison, const Column& column, std::size_t index) {
  using Kind = FieldValue::Kind;
  const FieldValue& value = comparison.value;
  const bool plain = column.meaning == Meaning::plain || column.meaning == Meaning::unsigned_int;
  // Not FLOAT: a filter takes its shortest digits, so that 0.9f is 0.9, and as a double it is 0.89999998.
  const bool number =
      plain && (column.type == Physical::int32 || column.type == Physical::int64 || column.type == Physical::float64);
  const bool boolean = plain && column.type == Physical::boolean;
  Condition made{index, comparison.op, {}};
  if (column.list || !column.outside.empty()) return std::nullopt;
  if (is_text(column) && value.kind == Kind::text) {
    made.value = value.text;
  } else if (boolean && value.kind == Kind::boolean && comparison.op == FieldComparison::Op::equal) {
    made.value = std::int64_t{value.boolean};
  } else if (number && value.kind == Kind::number) {
    if (value.integer)
      made.value = *value.integer;
    else
      made.value = value.number;
  } else {
    return std::nullopt;
  }
  return made;
}

bool matches(const Condition& condition, const Column& column, const Cell& cell) {
  if (cell.null) return false;
  const std::partial_ordering order = order_of(cell.values[0], column, condition);
  switch (condition.op) {
    case FieldComparison::Op::equal: return order == 0;
    case FieldComparison::Op::less: return order < 0;
    case FieldComparison::Op::at_most: return order <= 0;
    case FieldComparison::Op::more: return order > 0;
    case FieldComparison::Op::at_least: return order >= 0;
  }
  return false;
}

bool may_match(const Condition& condition, const Column& column, const Range& range) {
  if (!range.lowest || !range.highest) return true;
  const Value lowest = bound_of(column, *range.lowest), highest = bound_of(column, *range.highest);
  if (lowest.is_null() || highest.is_null()) return true;
  const std::partial_ordering low = order_of(lowest, column, condition), high = order_of(highest, column, condition);
  switch (condition.op) {
    case FieldComparison::Op::equal: return low <= 0 && high >= 0;
    case FieldComparison::Op::less: return low < 0;
    case FieldComparison::Op::at_most: return low <= 0;
    case FieldComparison::Op::more: return high > 0;
    case FieldComparison::Op::at_least: return high >= 0;
  }
  return true;
}

}  // namespace systole::parquet
