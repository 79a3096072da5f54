#pragma once
// UTF-8 as Unicode 15 defines it (table 3-7): no overlong forms, no surrogates, nothing above U+10FFFF.

#include <cstddef>
#include <string>
#include <string_view>

namespace systole {

struct Utf8Step {
  std::size_t length = 0;  // bytes of the character, or of the maximal part of an ill-formed one; 0 at the end
  bool valid = true;
};

// The character that `text` starts with.
Utf8Step utf8_step(std::string_view text);
// The length of the longest well-formed prefix.
std::size_t valid_utf8_prefix(std::string_view text);
// Puts U+FFFD in place of each ill-formed part; returns how many.
std::size_t replace_invalid_utf8(std::string& text);

}  // namespace systole
