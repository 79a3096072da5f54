#pragma once
// How much of a law a test tries, and with which seeds.

#include <cstdint>
#include <cstdlib>

namespace systole::laws {

// SYSTOLE_TEST_LONG: full counts.
inline bool is_long() { return std::getenv("SYSTOLE_TEST_LONG") != nullptr; }

// SYSTOLE_TEST_SEED, or 1.
inline std::uint64_t test_seed() {
  const char* seed = std::getenv("SYSTOLE_TEST_SEED");
  return seed != nullptr && *seed != 0 ? std::strtoull(seed, nullptr, 10) : 1;
}

}  // namespace systole::laws
