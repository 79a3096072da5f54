#pragma once
// T5's relative positions (arXiv:1910.10683, section 2.1). A distance maps to one of a few buckets: a small distance
// has its own, larger ones share ever wider ones, and all from `furthest` on share the last. A learned number per
// bucket and head is added to the scores. Beyond -furthest (and furthest) the bucket is constant, so the numbers of the
// distances from -furthest to 0, or to furthest, are attention's bias_by_distance for rows of any length.

#include <cstdint>
#include <vector>

#include "describe/ops/ops.h"

namespace systole {

struct RelativePositions {
  std::int64_t buckets = 32;
  std::int64_t furthest = 128;
  bool both_ways = true;  // keys after the query use the second half of the buckets; false: no key is after it

  std::int64_t origin() const { return furthest; }  // index of distance 0
  std::int64_t distances() const { return (both_ways ? 2 : 1) * furthest + 1; }
};

// The bucket of key position - query position. REQUIRES: at least 2 buckets per side, fewer than 2 furthest.
std::int64_t bucket_of(std::int64_t distance, const RelativePositions& positions);
std::vector<std::int64_t> buckets_by_distance(const RelativePositions& positions);

// table[buckets, heads] → [heads, distances].
Value bias_by_distance(Value table, const RelativePositions& positions);

}  // namespace systole
