#pragma once
// UTF-8 functions for reading text, beyond ground/base/utf8.h: finds the maximal parts of ill-formed UTF-8, which
// Unicode recommends to replace (version 15, table 3-8).

#include <cstddef>
#include <string>
#include <string_view>

namespace systole {

struct Utf8Step {
  std::size_t length = 0;  // bytes of the character, or of the maximal ill-formed part; 0 at the end
  bool valid = true;
};

// The first character of `text`.
Utf8Step utf8_step(std::string_view text);
// Replaces each maximal ill-formed part by U+FFFD; returns how many.
std::size_t replace_ill_formed_parts(std::string& text);

}  // namespace systole
