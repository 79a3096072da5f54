#pragma once
// Lines of words, as ledgers, machines and Slurm's programs write them.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace systole {

// The first line, without its end, taken away from the text.
std::string_view take_line(std::string_view& text);
// The words between single spaces; two spaces have an empty one between them. They live as long as the line.
std::vector<std::string_view> words_of(std::string_view line);
// A whole number that is not negative, and nothing else.
std::optional<std::int64_t> number_of(std::string_view word);

}  // namespace systole
