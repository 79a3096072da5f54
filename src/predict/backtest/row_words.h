#pragma once
// Searches for words and numbers in the notes of published measurements.

#include <cstdint>
#include <optional>
#include <string_view>

namespace systole::backtest {

// True if `text` contains `words`, ignoring case.
bool says(std::string_view text, std::string_view words);

// The number that follows `words` (spaces, '=' and ':' between them): number_after("vocab 50,257 is", "vocab") = 50257.
std::optional<double> number_after(std::string_view text, std::string_view words);
// The number that stands before `words`: number_before("8x400 Gb/s IB", " Gb/s") = 400.
std::optional<double> number_before(std::string_view text, std::string_view words);

}  // namespace systole::backtest
