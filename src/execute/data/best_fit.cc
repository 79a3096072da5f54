// best_fit_rows: rows with equal room form a linked list; a bitmap over room marks the non-empty lists.

#include <algorithm>
#include <bit>

#include "execute/data/packing.h"

namespace systole {
namespace {

constexpr std::uint32_t kNone = ~std::uint32_t{0};

class OpenRows {
 public:
  explicit OpenRows(std::size_t sequence_length) : head_(sequence_length + 1, kNone), some_(sequence_length / 64 + 1) {}

  void clear() {
    std::fill(head_.begin(), head_.end(), kNone);
    std::fill(some_.begin(), some_.end(), 0);
    first_ += static_cast<std::uint32_t>(next_.size());
    next_.clear();
  }

  // Takes the row with the least room that is at least `length`, or a new one; sets `room` to its room before.
  std::uint32_t take(std::size_t length, std::size_t& room) {
    room = least_room(length);
    if (room == head_.size()) {
      room = head_.size() - 1;
      next_.push_back(kNone);
      return first_ + static_cast<std::uint32_t>(next_.size()) - 1;
    }
    const std::uint32_t row = head_[room];
    head_[room] = next_[row - first_];
    if (head_[room] == kNone) some_[room / 64] &= ~(std::uint64_t{1} << room % 64);
    return row;
  }

  void put_back(std::uint32_t row, std::size_t room) {
    next_[row - first_] = head_[room];
    head_[room] = row;
    some_[room / 64] |= std::uint64_t{1} << room % 64;
  }

 private:
  std::size_t least_room(std::size_t length) const {
    std::uint64_t word = some_[length / 64] & (~std::uint64_t{0} << length % 64);
    for (std::size_t i = length / 64;; word = some_[i]) {
      if (word != 0) return i * 64 + static_cast<std::size_t>(std::countr_zero(word));
      if (++i == some_.size()) return head_.size();
    }
  }

  std::vector<std::uint32_t> head_;  // by room
  std::vector<std::uint64_t> some_;  // bit per room
  std::vector<std::uint32_t> next_;  // by row of this window
  std::uint32_t first_ = 0;          // row of this window
};

}  // namespace

std::vector<std::uint32_t> best_fit_rows(std::span<const std::uint32_t> lengths, std::int64_t sequence_length,
                                         std::size_t window) {
  std::vector<std::uint32_t> rows(lengths.size()), order;
  OpenRows open(static_cast<std::size_t>(sequence_length));
  for (std::size_t begin = 0; begin < lengths.size(); begin += window) {
    const std::size_t end = std::min(begin + window, lengths.size());
    order.resize(end - begin);
    for (std::size_t i = begin; i < end; ++i) order[i - begin] = static_cast<std::uint32_t>(i - begin);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return lengths[begin + a] > lengths[begin + b]; });
    for (const std::uint32_t place : order) {
      const std::uint32_t length = lengths[begin + place];
      CHECK(length >= 1 && length <= sequence_length, "a piece of {} tokens for rows of {}", length, sequence_length);
      std::size_t room = 0;
      const std::uint32_t row = open.take(length, room);
      open.put_back(row, room - length);
      rows[begin + place] = row;
    }
    open.clear();
  }
  return rows;
}

}  // namespace systole
