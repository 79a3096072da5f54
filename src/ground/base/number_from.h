#pragma once
// A number that is a whole text.

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace systole {

// As std::from_chars reads it, without spaces or '+'. Nothing: it is none, more follows, or T does not hold it.
template <typename T = std::int64_t>
std::optional<T> number_from(std::string_view text) {
  T number{};
  const char* const behind = text.data() + text.size();
  const auto [end, failed] = std::from_chars(text.data(), behind, number);
  return failed == std::errc() && end == behind ? std::optional<T>(number) : std::nullopt;
}

}  // namespace systole
