#pragma once
// A path to values within JSON: `text`, `meta.lang`, `messages[*].content`, `choices[0].message.content`. A step is a key
// (in double quotes if it holds a dot or bracket: "a.b".c), an index [3], or every item [*].

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "execute/data/formats/field_value.h"
#include "ground/base/result.h"

namespace systole {

struct FieldPath {
  struct Step {
    std::string key;          // or, if empty:
    std::int64_t index = -1;  // negative: every item
  };
  std::vector<Step> steps;

  // Errors: invalid, with the character's place in the path.
  static Result<FieldPath> parse(std::string_view text);
};

// The text at the path; of several values, one a line. Errors, without a place: invalid (not JSON, nothing there, not text).
Result<std::string> json_text_at(std::string_view json, const FieldPath& path);
// The first value at the path; null if there is none. Errors, without a place: invalid (not JSON).
Result<FieldValue> json_value_at(std::string_view json, const FieldPath& path);

}  // namespace systole
