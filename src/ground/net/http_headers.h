#pragma once
// Header fields of HTTP messages, in their order.

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace systole {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

// The value of the first field with this name, or null.
inline const std::string* find_header(const HttpHeaders& headers, std::string_view name) {
  const auto found = std::ranges::find(headers, name, &HttpHeaders::value_type::first);
  return found == headers.end() ? nullptr : &found->second;
}

}  // namespace systole
