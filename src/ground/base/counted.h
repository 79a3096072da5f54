#pragma once
// A count with its noun, for messages: "1 row", "2,000 rows", "1 batch", "3 batches", "2 entries". All plurals are
// formed here.

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace systole {

std::string counted_text(std::int64_t count, std::string_view noun);
// The noun alone, in the form for `count`.
std::string noun_for(std::int64_t count, std::string_view noun);

template <std::integral N>
std::string counted(N count, std::string_view noun) {
  return counted_text(static_cast<std::int64_t>(count), noun);
}

}  // namespace systole
