#pragma once
// Internals of the JSON Lines reader (text_source.h).

#include <cstddef>
#include <optional>
#include <string>

#include "execute/data/formats/record_filter.h"

namespace systole {

// The name of a field of a record, or a path into it.
struct JsonField {
  std::string name;
  std::optional<FieldPath> path;  // once it was needed
};

// Reads a JSON record, which is parsed once: whether the filter keeps it (null: all are), and if so the texts of its
// fields; `target` is none if it has no name. Errors: invalid, with the column; those of the filter.
Result<bool> read_json_record(std::string_view record, const RecordFilter* filter, JsonField& field, JsonField& target,
                              const Where& where, std::string& text, std::string& target_text);

// Replaces each unpaired surrogate escape (\uD83D) by U+FFFD; returns how many.
std::size_t replace_half_pairs(std::string& record);

}  // namespace systole
