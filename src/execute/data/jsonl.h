#pragma once
// What reading JSON Lines needs beyond text_source.h.

#include <cstddef>
#include <string>

namespace systole {

// Puts U+FFFD in place of each escape (\uD83D) that is half of a surrogate pair, alone; returns how many.
std::size_t replace_half_pairs(std::string& record);

}  // namespace systole
