#pragma once
// Finds quotes and brackets of a YAML document that are never closed, and reports where they open. yaml-cpp reports
// them at the end of the document or as a key that is a map, or takes the rest of the document as the text.

#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>

#include <optional>
#include <string_view>

#include "ground/base/error.h"

namespace systole {

// The error for an unclosed quote at `mark`, the start of a scalar with its tag and anchor. Nothing if it is closed or
// there is no quote.
std::optional<Error> unclosed_quote(std::string_view text, std::string_view file, const YAML::Mark& mark);

// What is not closed in a document that yaml-cpp refused (`thrown`), or in which it made a list or map a key (`thrown`
// is null then). Looks no deeper than `depth`.
std::optional<Error> find_unclosed(std::string_view text, std::string_view file, const YAML::Exception* thrown,
                                   int depth);

}  // namespace systole
