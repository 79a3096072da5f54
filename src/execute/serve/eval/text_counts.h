#pragma once
// Counts of a text as Python has them, because evaluations are compared with those of lm-evaluation-harness: white space
// is what str.isspace() says. Bytes that are not UTF-8 count as a character each.

#include <cstdint>
#include <string_view>

namespace systole {

std::int64_t count_characters(std::string_view text);  // len(text)
std::int64_t count_words(std::string_view text);       // len(re.split(r"\s+", text)): stretches of white space, and one
std::string_view without_space_behind(std::string_view text);  // text.rstrip()
std::string_view without_space_around(std::string_view text);  // text.strip()

}  // namespace systole
