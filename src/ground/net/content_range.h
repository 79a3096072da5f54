#pragma once
// The header Content-Range of an answer (RFC 9110, section 14.4).

#include <optional>
#include <string_view>

#include "ground/base/number_from.h"

namespace systole {

struct ContentRange {
  std::optional<std::int64_t> begin;  // nothing: "*", no byte is in the answer
  std::optional<std::int64_t> total;  // nothing: "*", it is not known
};

// "bytes 6-10/11", "bytes 6-10/*" or "bytes */11". Nothing: it is none of these.
inline std::optional<ContentRange> read_content_range(std::string_view text) {
  constexpr std::string_view kUnit = "bytes ";
  const std::size_t slash = text.find('/');
  if (!text.starts_with(kUnit) || slash == text.npos) return std::nullopt;
  const std::string_view range = text.substr(kUnit.size(), slash - kUnit.size()), whole = text.substr(slash + 1);
  ContentRange read;
  if (range != "*") {
    const std::size_t dash = range.find('-');
    if (dash == range.npos) return std::nullopt;
    const auto last = number_from(range.substr(dash + 1));
    read.begin = number_from(range.substr(0, dash));
    if (!read.begin || !last || *last < *read.begin) return std::nullopt;
  }
  if (whole != "*") {
    read.total = number_from(whole);
    if (!read.total || *read.total < 0) return std::nullopt;
  }
  return read;
}

}  // namespace systole
