#pragma once
// Numbers of a few bits, packed from the lowest bit up, and the runs that Parquet makes of them for levels, indices of
// dictionaries and booleans: a varint, if even `count << 1` of one value in whole bytes, if odd `groups << 1 | 1` of
// groups of eight packed values. https://github.com/apache/parquet-format/blob/master/Encodings.md

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace systole::parquet {

static_assert(std::endian::native == std::endian::little, "files are little-endian, and read as they are");

// The `width` bits from bit `at` on; those beyond the bytes are 0. width <= 64.
inline std::uint64_t bits_at(std::span<const std::byte> bytes, std::size_t at, int width) {
  const std::size_t first = at / 8;
  const unsigned shift = at % 8;
  std::uint64_t low = 0, high = 0;
  if (first + 9 <= bytes.size()) [[likely]] {
    std::memcpy(&low, bytes.data() + first, 8);
    high = std::to_integer<std::uint64_t>(bytes[first + 8]);
  } else if (first < bytes.size()) {
    const std::size_t left = bytes.size() - first;
    std::memcpy(&low, bytes.data() + first, left < 8 ? left : 8);
    if (left > 8) high = std::to_integer<std::uint64_t>(bytes[first + 8]);
  }
  std::uint64_t value = low >> shift;
  if (shift > 0) value |= high << (64 - shift);
  return width == 64 ? value : value & ((std::uint64_t{1} << width) - 1);
}

// False where the bytes end first, or the number has more than 64 bits.
inline bool take_varint(std::span<const std::byte>& bytes, std::uint64_t& value) {
  value = 0;
  for (std::size_t i = 0; i < bytes.size() && i < 10; ++i) {
    const auto byte = std::to_integer<std::uint64_t>(bytes[i]);
    value |= (byte & 0x7f) << (7 * i);
    if (byte >= 0x80) continue;
    bytes = bytes.subspan(i + 1);
    return true;
  }
  return false;
}

// Reads runs, any number of values at a time.
class RunReader {
 public:
  RunReader() = default;
  RunReader(std::span<const std::byte> bytes, int width) : bytes_(bytes), width_(width) {}

  // Fills `into`; false where the runs end before, or are damaged. REQUIRES: width <= 32.
  template <typename T>
  bool read(std::span<T> into) {
    for (std::size_t done = 0; done < into.size();) {
      if (left_ == 0 && !next_run()) return false;
      const std::size_t count = left_ < into.size() - done ? left_ : into.size() - done;
      if (packed_.data() == nullptr) {
        for (std::size_t i = 0; i < count; ++i) into[done + i] = static_cast<T>(repeated_);
      } else {
        for (std::size_t i = 0; i < count; ++i, bit_ += static_cast<std::size_t>(width_))
          into[done + i] = static_cast<T>(bits_at(packed_, bit_, width_));
      }
      left_ -= count;
      done += count;
    }
    return true;
  }

 private:
  bool next_run() {
    static constexpr std::byte kNothing[1] = {};
    std::uint64_t head = 0;
    if (!take_varint(bytes_, head) || head < 2) return false;
    const auto width = static_cast<std::size_t>(width_);
    if ((head & 1) == 0) {
      const std::size_t size = (width + 7) / 8;
      if (size > bytes_.size()) return false;
      packed_ = {};
      repeated_ = bits_at(bytes_.first(size), 0, width_);
      bytes_ = bytes_.subspan(size);
      left_ = head >> 1;
      return true;
    }
    const std::uint64_t groups = head >> 1;
    if (groups > (std::uint64_t{1} << 40)) return false;
    const std::uint64_t size = groups * width;
    // Some writers leave the last group's unused bytes out.
    packed_ = bytes_.first(size < bytes_.size() ? size : bytes_.size());
    bytes_ = bytes_.subspan(packed_.size());
    if (packed_.data() == nullptr || width == 0) packed_ = std::span(kNothing).first(0);
    left_ = width == 0 ? groups * 8 : packed_.size() * 8 / width;
    if (left_ > groups * 8) left_ = groups * 8;
    bit_ = 0;
    return left_ > 0;
  }

  std::span<const std::byte> bytes_, packed_;
  int width_ = 0;
  std::uint64_t repeated_ = 0;
  std::size_t left_ = 0, bit_ = 0;
};

}  // namespace systole::parquet
