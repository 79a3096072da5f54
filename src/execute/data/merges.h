#pragma once
// Byte-pair merging (Sennrich et al. 2016, arXiv 1508.07909): as long as any two neighbours are a known pair, the pair
// of the lowest rank, the leftmost among equals, becomes one token. Private to this folder.

#include <cstdint>
#include <span>
#include <vector>

#include "ground/base/units.h"

namespace systole {

struct Merge {
  std::int32_t left = 0, right = 0;  // tokens
  std::int32_t result = 0;
};

// A hash table. Immutable; thread-safe. Memory: 16 bytes per slot, at most half of the slots used.
class MergeTable {
 public:
  // `merges` in order of rank. If a pair appears twice, the later one counts.
  explicit MergeTable(std::span<const Merge> merges);

  static constexpr std::uint32_t kNone = 0xFFFFFFFF;
  struct Found {
    std::uint32_t rank = kNone;
    std::int32_t result = 0;
  };
  Found find(std::int32_t left, std::int32_t right) const {
    const std::uint64_t key = key_of(left, right);
    for (std::size_t at = place(key);; at = (at + 1) & mask_) {
      const Slot& slot = slots_[at];
      if (slot.key == key) return {slot.rank, slot.result};
      if (slot.rank == kNone) return {};
    }
  }

  Bytes resident() const { return Bytes(static_cast<std::int64_t>(slots_.size() * sizeof(Slot))); }

  // Merges the tokens of one word in place. O(n²) for short words, O(n log n) for long ones; equal results.
  void apply(std::vector<std::int32_t>& word) const;

 private:
  struct Slot {
    std::uint64_t key = 0;
    std::uint32_t rank = kNone;  // kNone: the slot is empty
    std::int32_t result = 0;
  };
  static std::uint64_t key_of(std::int32_t left, std::int32_t right) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 | static_cast<std::uint32_t>(right);
  }
  std::size_t place(std::uint64_t key) const { return static_cast<std::size_t>((key * 0x9E3779B97F4A7C15u) >> shift_); }

  void apply_short(std::vector<std::int32_t>& word) const;
  void apply_long(std::vector<std::int32_t>& word) const;

  std::vector<Slot> slots_;
  std::size_t mask_ = 0;
  int shift_ = 0;
};

}  // namespace systole
