#include "execute/data/merges.h"

#include <algorithm>
#include <array>
#include <bit>
#include <queue>
#include <tuple>

namespace systole {
namespace {
constexpr std::size_t kShort = 48;  // tokens; above it a heap is faster than looking at all pairs
}

MergeTable::MergeTable(std::span<const Merge> merges) {
  const std::size_t size = std::bit_ceil(std::max<std::size_t>(merges.size() * 2, 16));
  slots_.resize(size);
  mask_ = size - 1;
  shift_ = 64 - std::countr_zero(size);
  std::uint32_t rank = 0;
  for (const Merge& merge : merges) {
    const std::uint64_t key = key_of(merge.left, merge.right);
    std::size_t at = place(key);
    while (slots_[at].rank != kNone && slots_[at].key != key) at = (at + 1) & mask_;
    slots_[at] = {key, rank++, merge.result};
  }
}

void MergeTable::apply(std::vector<std::int32_t>& word) const {
  if (word.size() < 2) return;
  if (word.size() <= kShort) {
    apply_short(word);
  } else {
    apply_long(word);
  }
}

void MergeTable::apply_short(std::vector<std::int32_t>& word) const {
  std::array<Found, kShort> pairs;  // pairs[i]: of word[i] and word[i + 1]
  std::size_t count = word.size() - 1;
  for (std::size_t i = 0; i < count; ++i) pairs[i] = find(word[i], word[i + 1]);
  while (count > 0) {
    std::size_t best = 0;
    for (std::size_t i = 1; i < count; ++i) {
      if (pairs[i].rank < pairs[best].rank) best = i;
    }
    if (pairs[best].rank == kNone) break;
    word[best] = pairs[best].result;
    std::copy(word.begin() + static_cast<std::ptrdiff_t>(best) + 2,
              word.begin() + static_cast<std::ptrdiff_t>(count) + 1,
              word.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    std::copy(pairs.begin() + best + 1, pairs.begin() + count, pairs.begin() + best);
    --count;
    if (best > 0) pairs[best - 1] = find(word[best - 1], word[best]);
    if (best < count) pairs[best] = find(word[best], word[best + 1]);
  }
  word.resize(count + 1);
}

void MergeTable::apply_long(std::vector<std::int32_t>& word) const {
  constexpr std::int32_t kGone = -1;
  struct Candidate {
    std::uint32_t rank;
    std::size_t left, right;  // indexes into the word
    std::int32_t result;
    std::int32_t was_left, was_right;  // stale if the tokens at these indexes have changed
    bool operator<(const Candidate& other) const { return std::tie(rank, left) > std::tie(other.rank, other.left); }
  };
  const std::size_t size = word.size();
  std::vector<std::size_t> next(size), previous(size);
  for (std::size_t i = 0; i < size; ++i) {
    next[i] = i + 1;
    previous[i] = i - 1;  // of the first: never used
  }
  std::priority_queue<Candidate> queue;
  const auto consider = [&](std::size_t left, std::size_t right) {
    const Found found = find(word[left], word[right]);
    if (found.rank != kNone) queue.push({found.rank, left, right, found.result, word[left], word[right]});
  };
  for (std::size_t i = 0; i + 1 < size; ++i) consider(i, i + 1);
  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    if (word[best.left] != best.was_left || word[best.right] != best.was_right || next[best.left] != best.right)
      continue;
    word[best.left] = best.result;
    word[best.right] = kGone;
    const std::size_t after = next[best.left] = next[best.right];
    if (after < size) {
      previous[after] = best.left;
      consider(best.left, after);
    }
    if (best.left > 0) consider(previous[best.left], best.left);
  }
  std::erase(word, kGone);
}

}  // namespace systole
