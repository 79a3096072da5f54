#pragma once
// An argument with several values: "a,b".

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace systole::cli {

// The texts between the commas; none of an empty text.
inline std::vector<std::string> comma_list(std::string_view text) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; !text.empty() && at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    parts.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

}  // namespace systole::cli
