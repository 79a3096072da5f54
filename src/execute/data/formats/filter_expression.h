#pragma once
// The expression of a filter (record_filter.h), parsed. Private to it.

#include <string>
#include <string_view>
#include <vector>

#include "execute/data/formats/record_filter.h"

namespace systole {

// A tree; its depth is bounded by the parser.
struct RecordFilter::Expression {
  enum class Op { constant, field, equal, differs, less, at_most, more, at_least, in, contains, negated, both, either };
  Op op = Op::constant;
  FieldValue value;               // of a constant
  std::string path;               // of a field
  std::vector<Expression> inner;  // operands; of `in`, the value and the list's items
};

// Adds the paths of fields to `fields`, each once. Errors: invalid, at the wrong character's place.
Result<RecordFilter::Expression> parse_filter(std::string_view text, const Where& where,
                                              std::vector<std::string>& fields);

// Whether all of `text` is a number; then it is the value.
bool read_number(std::string_view text, FieldValue& value);

}  // namespace systole
