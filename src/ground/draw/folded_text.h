#pragma once
// Folds text into lines of a given width. A column is a UTF-8 character; color codes take none.

#include <limits>
#include <string>
#include <string_view>

namespace systole {

constexpr int kUnfolded = std::numeric_limits<int>::max();  // no folding

std::size_t shown_width(std::string_view text);
// The first `columns` columns.
std::string cut_to(std::string_view text, int columns);

// Breaks between words into lines of `width` columns; indents all but the first.
std::string wrapped(std::string_view text, std::size_t width, const std::string& indent);

// Breaks the lines that are wider than `width` between words; indents continuations by four beyond the line's own
// indent.
std::string folded(std::string_view text, int width);

// The same for an error message; keeps commands and quoted source lines whole.
std::string folded_error(std::string_view text, int width);

}  // namespace systole
