#pragma once
// HighwayHash-64 (Alakuijala, Cox, Wassenberg 2016, arXiv 1612.06257; github.com/google/highwayhash), the checksum of
// Riegeli files, with AVX2 where the machine has it: an update of 32 bytes is a dozen instructions on four lanes.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace systole {

using HighwayKey = std::array<std::uint64_t, 4>;

std::uint64_t highway_hash64(std::span<const std::byte> bytes, const HighwayKey& key);
// The slow twin of it, in plain C++, for machines without AVX2 and for tests.
std::uint64_t highway_hash64_portable(std::span<const std::byte> bytes, const HighwayKey& key);

}  // namespace systole
