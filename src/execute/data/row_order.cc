#include "execute/data/row_order.h"

#include "ground/base/error.h"
#include "ground/base/philox.h"

namespace systole {

namespace {
constexpr std::uint64_t kRounds = 6;
}

RowOrder::RowOrder(std::int64_t rows, std::uint64_t seed, bool shuffled)
    : rows_(rows), seed_(seed), shuffled_(shuffled) {
  CHECK(rows >= 1, "an order of {} rows", rows);
  while ((std::uint64_t{1} << (2 * half_bits_)) < static_cast<std::uint64_t>(rows)) ++half_bits_;
}

std::int64_t RowOrder::at(std::int64_t epoch, std::int64_t position) const {
  CHECK(position >= 0 && position < rows_ && epoch >= 0, "position {} of {}, epoch {}", position, rows_, epoch);
  if (!shuffled_) return position;
  auto value = static_cast<std::uint64_t>(position);
  do { value = through(static_cast<std::uint64_t>(epoch), value); } while (value >= static_cast<std::uint64_t>(rows_));
  return static_cast<std::int64_t>(value);
}

std::uint64_t RowOrder::through(std::uint64_t epoch, std::uint64_t value) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  std::uint64_t left = value >> half_bits_, right = value & mask;
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    const PhiloxBlock bits = philox(seed_, philox_counter(right, epoch * kRounds + round));
    const std::uint64_t mixed = left ^ (((std::uint64_t{bits[1]} << 32) | bits[0]) & mask);
    left = right;
    right = mixed;
  }
  return (left << half_bits_) | right;
}

}  // namespace systole
