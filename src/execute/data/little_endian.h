#pragma once
// Numbers in file formats: little-endian, which every machine Systole runs on is.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace systole {

static_assert(std::endian::native == std::endian::little, "the data formats are written as the machine holds them");

template <typename T>
void put(std::vector<std::byte>& bytes, T value) {
  const auto* from = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), from, from + sizeof(T));
}
inline void put(std::vector<std::byte>& bytes, std::string_view text) {
  const auto* from = reinterpret_cast<const std::byte*>(text.data());
  bytes.insert(bytes.end(), from, from + text.size());
}

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
