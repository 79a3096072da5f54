#pragma once
// A fixed count, or a minimum and a maximum.

#include <cstdint>

namespace systole {

// "4", or "2:8" where the count may change during the run.
struct CountRange {
  std::int64_t least = 1, most = 1;
  bool elastic() const { return least != most; }
  bool operator==(const CountRange&) const = default;
};

}  // namespace systole
