#include "describe/models/t5/relative_position.h"

#include <algorithm>
#include <cmath>

namespace systole {

std::int64_t bucket_of(std::int64_t distance, const RelativePositions& positions) {
  const std::int64_t side = positions.both_ways ? positions.buckets / 2 : positions.buckets;
  const std::int64_t first = positions.both_ways && distance > 0 ? side : 0;
  const std::int64_t away = positions.both_ways ? std::abs(distance) : std::max<std::int64_t>(0, -distance);
  const std::int64_t exact = side / 2;
  if (away < exact) return first + away;
  const double share = std::log(static_cast<double>(away) / static_cast<double>(exact)) /
                       std::log(static_cast<double>(positions.furthest) / static_cast<double>(exact));
  // Where `share` should be a whole number of buckets, its logarithm may be rounded down.
  const auto further = static_cast<std::int64_t>(std::floor(share * static_cast<double>(side - exact) + 1e-9));
  return first + std::min(side - 1, exact + further);
}

std::vector<std::int64_t> buckets_by_distance(const RelativePositions& positions) {
  std::vector<std::int64_t> buckets;
  for (std::int64_t i = 0; i < positions.distances(); ++i)
    buckets.push_back(bucket_of(i - positions.origin(), positions));
  return buckets;
}

Value bias_by_distance(Value table, const RelativePositions& positions) {
  const std::vector<std::int64_t> buckets = buckets_by_distance(positions);
  std::vector<Value> runs;  // one per run of distances in the same bucket
  for (std::size_t begin = 0; begin < buckets.size();) {
    std::size_t end = begin;
    while (end < buckets.size() && buckets[end] == buckets[begin]) ++end;
    const Type run(DType::i32, {static_cast<std::int64_t>(end - begin)}, {"distance"});
    runs.push_back(constant(*table.graph, run, static_cast<double>(buckets[begin])));
    begin = end;
  }
  return transpose(embedding(table, concatenate(runs, 0)), std::vector<int>{1, 0});
}

}  // namespace systole
