#pragma once
// A comparison of a flat column with a value, for reading some of the rows: those of `score >= 0.5`, `lang == "de"`. A
// null is never equal to, below or above anything, so its row does not match.

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "execute/data/formats/field_value.h"
#include "execute/data/formats/parquet/metadata.h"
#include "execute/data/formats/parquet/value.h"

namespace systole::parquet {

struct Condition {
  std::size_t column = 0;  // of the file
  FieldComparison::Op op = FieldComparison::Op::equal;
  std::variant<std::int64_t, double, std::string> value;
};

// Nothing where the column's own values are not what a filter compares: a list, a number with a text, a FLOAT, a
// decimal, a time.
std::optional<Condition> condition_of(const FieldComparison& comparison, const Column& column, std::size_t index);

// `column` is the condition's.
bool matches(const Condition& condition, const Column& column, const Cell& cell);
// Whether a row group with this range may have a row that matches; true where the range does not say.
bool may_match(const Condition& condition, const Column& column, const Range& range);

}  // namespace systole::parquet
