#pragma once
// Internals of the JSON Lines reader (text_source.h).

#include <cstddef>
#include <string>

namespace systole {

// Replaces each unpaired surrogate escape (\uD83D) by U+FFFD; returns how many.
std::size_t replace_half_pairs(std::string& record);

}  // namespace systole
