#pragma once
// Lines of words, in ledgers and in the output of machines and Slurm's programs.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace systole {

// Removes the first line from the text and returns it, without its end.
std::string_view take_line(std::string_view& text);
// The words between single spaces; two spaces enclose an empty word. They reference the line.
std::vector<std::string_view> words_of(std::string_view line);
// Parses a nonnegative whole number; the whole word must be digits.
std::optional<std::int64_t> number_of(std::string_view word);

}  // namespace systole
