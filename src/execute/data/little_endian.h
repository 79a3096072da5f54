#pragma once
// Little-endian numbers in file formats. Every machine that runs Systole is little-endian.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace systole {

static_assert(std::endian::native == std::endian::little, "the data formats are written as the machine holds them");

inline void put_bytes(std::vector<std::byte>& bytes, const void* from, std::size_t size) {
  const std::size_t end = bytes.size();
  bytes.resize(end + size);
  if (size > 0) std::memcpy(bytes.data() + end, from, size);
}
template <typename T>
void put(std::vector<std::byte>& bytes, T value) {
  put_bytes(bytes, &value, sizeof(T));
}
inline void put(std::vector<std::byte>& bytes, std::string_view text) { put_bytes(bytes, text.data(), text.size()); }

// REQUIRES: offset + sizeof(T) <= bytes.size().
template <typename T>
T get(std::span<const std::byte> bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}
inline bool holds(std::span<const std::byte> bytes, std::size_t offset, std::string_view text) {
  return std::memcmp(bytes.data() + offset, text.data(), text.size()) == 0;
}

}  // namespace systole
