#pragma once
// T5's relative positions (arXiv:1910.10683, section 2.1): a distance falls into one of a few buckets, near distances
// into one each, further ones into ever wider ones, all from `furthest` on into the last; a bucket has a number for
// each head, which is added to the scores. As the distances from -furthest on (to 0, or to furthest) are all that
// differ, the numbers of all buckets spread over them are attention's bias_by_distance for rows of any length.

#include <cstdint>
#include <vector>

#include "describe/graph/ops/ops.h"

namespace systole {

struct RelativePositions {
  std::int64_t buckets = 32;
  std::int64_t furthest = 128;
  bool both_ways = true;  // keys after the query have the second half of the buckets; else all are of keys before it

  std::int64_t origin() const { return furthest; }  // index of distance 0
  std::int64_t distances() const { return (both_ways ? 2 : 1) * furthest + 1; }
};

// Of key place - query place. REQUIRES: at least 2 buckets a side, fewer than 2 furthest.
std::int64_t bucket_of(std::int64_t distance, const RelativePositions& positions);
std::vector<std::int64_t> buckets_by_distance(const RelativePositions& positions);

// table[buckets, heads] → [heads, distances].
Value bias_by_distance(Value table, const RelativePositions& positions);

}  // namespace systole
