#pragma once
// Quotes and brackets of a YAML document that are never closed. yaml-cpp tells of them where the document ends, or as a
// key that is a map, or takes the rest of the document for the text. Here they are told where they open.

#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>

#include <optional>
#include <string_view>

#include "ground/base/error.h"

namespace systole {

// The error of a quote that opens at `mark`, of a scalar with its tag and anchor, and is never closed; nothing: it is
// closed, or there is none.
std::optional<Error> unclosed_quote(std::string_view text, std::string_view file, const YAML::Mark& mark);

// What is not closed, of a document that yaml-cpp refused, or of which it made a key that is a list or a map (`thrown`
// is null then). Looks no deeper than `depth`.
std::optional<Error> find_unclosed(std::string_view text, std::string_view file, const YAML::Exception* thrown,
                                   int depth);

}  // namespace systole
