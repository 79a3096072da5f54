#pragma once
// What reading text needs beyond ground/base/utf8.h: ill-formed bytes by their maximal parts, as Unicode recommends for
// replacing them (version 15, table 3-8).

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
// Puts U+FFFD in place of each maximal ill-formed part; returns how many.
std::size_t replace_ill_formed_parts(std::string& text);

}  // namespace systole
