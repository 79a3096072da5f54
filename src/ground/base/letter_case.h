#pragma once
// Upper and lower case of ASCII names in any locale: metrics, enums of foreign interfaces.

#include <string>
#include <string_view>

namespace systole {

// "a3" becomes "A3"; other bytes are unchanged.
inline std::string upper_case(std::string_view text) {
  std::string upper(text);
  for (char& c : upper)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return upper;
}

// "A3" becomes "a3"; other bytes are unchanged.
inline std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

}  // namespace systole
