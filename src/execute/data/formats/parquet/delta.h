#pragma once
// DELTA_BINARY_PACKED: integers as differences, in blocks with a smallest difference each, divided into parts that are
// packed with as many bits as their largest needs. A head (values of a block, parts of a block, count, first value),
// then per block: the smallest difference, a byte with the bits of each part, the parts.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace systole::parquet {

class DeltaReader {
 public:
  // Null, or what is wrong with the head.
  const char* open(std::span<const std::byte> bytes);
  // Fills `into`. Null, or what is wrong. Sums are of 64 bits and wrap; values of 32 bits are their lower half.
  const char* read(std::span<std::int64_t> into);
  std::uint64_t count() const { return count_; }
  std::uint64_t left() const { return left_; }
  // What stands behind the values. REQUIRES: left() == 0.
  std::span<const std::byte> rest() const { return bytes_; }

 private:
  static constexpr std::uint64_t kLargestBlock = 65536, kMostParts = 512;

  const char* next_part();

  std::span<const std::byte> bytes_, widths_, part_;
  std::uint64_t count_ = 0, left_ = 0;
  std::uint64_t part_values_ = 0, parts_ = 0;
  std::size_t next_width_ = 0;
  std::uint64_t in_part_ = 0;  // differences of the part that are not taken yet
  std::size_t bit_ = 0;
  int width_ = 0;
  std::uint64_t smallest_ = 0, last_ = 0;
  bool first_ = true;
};

}  // namespace systole::parquet
