#pragma once
// What the stores of Cloud Storage and of S3 read alike in the answers of their servers.

#include <optional>
#include <string_view>

#include "ground/base/number_from.h"
#include "ground/base/units.h"

namespace systole {

// Nothing: it is no number, or a negative one.
inline std::optional<Bytes> size_from(std::string_view text) {
  const std::optional<std::int64_t> size = number_from(text);
  return size && *size >= 0 ? std::optional(Bytes(*size)) : std::nullopt;
}

// Whether the page after `here` may begin at `next`: a server whose list always goes on, or goes nowhere, is none.
inline bool leads_on(std::string_view here, std::string_view next, int pages) {
  constexpr int kMostPages = 1'000'000;
  return !next.empty() && next != here && pages < kMostPages;
}

}  // namespace systole
