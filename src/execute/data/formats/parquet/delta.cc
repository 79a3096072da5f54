#include "execute/data/formats/parquet/delta.h"

#include "execute/data/formats/parquet/bits.h"

namespace systole::parquet {
namespace {

constexpr const char* kShort = "its DELTA_BINARY_PACKED values end too early";

std::uint64_t unzigzag(std::uint64_t value) { return (value >> 1) ^ (~(value & 1) + 1); }

}  // namespace

const char* DeltaReader::open(std::span<const std::byte> bytes) {
  bytes_ = bytes;
  std::uint64_t block = 0, first = 0;
  if (!take_varint(bytes_, block) || !take_varint(bytes_, parts_) || !take_varint(bytes_, count_) ||
      !take_varint(bytes_, first)) {
    return kShort;
  }
  if (block == 0 || block > kLargestBlock || block % 128 != 0) return "a DELTA block is not of 128 to 65,536 values";
  if (parts_ == 0 || parts_ > kMostParts || block % parts_ != 0 || block / parts_ % 32 != 0)
    return "the parts of a DELTA block are not of multiples of 32 values";
  part_values_ = block / parts_;
  last_ = unzigzag(first);
  left_ = count_;
  in_part_ = 0;
  next_width_ = 0;
  widths_ = {};
  first_ = true;
  return nullptr;
}

const char* DeltaReader::next_part() {
  if (next_width_ == widths_.size()) {
    std::uint64_t smallest = 0;
    if (!take_varint(bytes_, smallest) || bytes_.size() < parts_) return kShort;
    smallest_ = unzigzag(smallest);
    widths_ = bytes_.first(parts_);
    bytes_ = bytes_.subspan(parts_);
    next_width_ = 0;
  }
  width_ = std::to_integer<int>(widths_[next_width_++]);
  if (width_ > 64) return "a part of a DELTA block has more than 64 bits";
  const std::uint64_t size = part_values_ / 8 * static_cast<std::uint64_t>(width_);
  if (size > bytes_.size()) return kShort;
  part_ = bytes_.first(size);
  bytes_ = bytes_.subspan(size);
  in_part_ = part_values_;
  bit_ = 0;
  return nullptr;
}

const char* DeltaReader::read(std::span<std::int64_t> into) {
  if (into.size() > left_) return "its DELTA values are fewer than the page's";
  std::size_t done = 0;
  if (first_ && !into.empty()) {
    into[done++] = static_cast<std::int64_t>(last_);
    first_ = false;
  }
  while (done < into.size()) {
    if (in_part_ == 0) {
      if (const char* why = next_part(); why != nullptr) return why;
    }
    const std::uint64_t wanted = into.size() - done;
    const std::uint64_t count = in_part_ < wanted ? in_part_ : wanted;
    for (std::uint64_t i = 0; i < count; ++i, bit_ += static_cast<std::size_t>(width_)) {
      last_ += smallest_ + bits_at(part_, bit_, width_);
      into[done++] = static_cast<std::int64_t>(last_);
    }
    in_part_ -= count;
  }
  left_ -= into.size();
  return nullptr;
}

}  // namespace systole::parquet
