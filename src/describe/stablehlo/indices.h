#pragma once
// Indices that are data: integers of any shape, of which some may lie outside [0, count).

#include "describe/stablehlo/builder.h"

namespace systole::stablehlo {

// `value` in the type and shape of `like`.
inline Ssa whole(Builder& b, const Ssa& like, std::int64_t value) {
  return b.integer(like.type, static_cast<std::uint64_t>(value));
}

// Whether an index lies in [0, count).
inline Ssa within(Builder& b, const Ssa& index, std::int64_t count) {
  const Ssa zero = whole(b, index, 0), end = whole(b, index, count);
  return b.binary("and", b.compare("GE", index, zero), b.compare("LT", index, end));
}

// The nearest index in [0, count).
inline Ssa clamped(Builder& b, const Ssa& index, std::int64_t count) {
  const Ssa zero = whole(b, index, 0), last = whole(b, index, count - 1);
  return b.binary("minimum", b.binary("maximum", index, zero), last);
}

}  // namespace systole::stablehlo
