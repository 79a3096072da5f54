#pragma once
// More of CRC-32C, whose crc32c is in hash.h: the checksum of bytes that were summed in pieces, for example read by
// several threads.

#include <cstdint>

namespace systole {

// The CRC-32C of bytes with the checksum `first`, followed by `second_size` bytes with the checksum `second`.
// O(log second_size).
std::uint32_t crc32c_joined(std::uint32_t first, std::uint32_t second, std::uint64_t second_size);

}  // namespace systole
