#pragma once
// Internals of field_path.h: the values at a path of a parsed record.

#include <nlohmann/json.hpp>

#include "execute/data/formats/field_path.h"

namespace systole {

// In order; what a path does not reach is left out.
std::vector<const nlohmann::json*> values_at(const nlohmann::json& root, const FieldPath& path);
// The texts of these values, one a line. Errors, without a place: invalid (none, or not text).
Result<std::string> joined_texts(const std::vector<const nlohmann::json*>& values, std::string_view shown);

// The first one, as a filter compares it; null if there is none.
FieldValue value_of_first(const std::vector<const nlohmann::json*>& values);

}  // namespace systole
