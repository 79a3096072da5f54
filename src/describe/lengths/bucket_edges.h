#pragma once
// Buckets by length: a row is padded to the least edge that is not below its length, so that a few shapes serve all
// lengths; each shape is a Program of its own. And the edges for a histogram that waste the least.
//
// Edges e1 < .. < ek cost the sum over buckets of rows x cost(edge). With C the rows up to a length, a bucket over
// (i, j] costs cost(j) x (C(j) - C(i)), which is Monge if the cost never falls with the edge: the best split point
// never moves back as j grows. So each further shape is found by divide and conquer in O(n log n), n the number of
// different lengths (Galil and Park, "Dynamic programming with convexity, concavity and sparsity", 1992).

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "describe/lengths/length_histogram.h"

namespace systole {

struct Bucket {
  std::int64_t edge = 0;              // the length of its rows
  std::int64_t rows = 0, tokens = 0;  // tokens: without padding
  std::int64_t positions() const { return rows * edge; }
  bool operator==(const Bucket&) const = default;
};

// The share of positions that hold no token; 0 of 0.
double padding_share(std::int64_t tokens, std::int64_t positions);
double padding_share(std::span<const Bucket> buckets);

// The buckets of these edges, empty ones too. REQUIRES: edges ascend; the last is not below the longest length.
std::vector<Bucket> buckets_of(const LengthHistogram& rows, std::span<const std::int64_t> edges);

// The least number of buckets that together hold at least `share` of the rows.
std::int64_t buckets_holding(std::span<const Bucket> buckets, double share);

// The rows of a training step in the bucket of `edge`, where a step has `batch` rows of `longest`, the model's context:
// batch x floor(longest / edge), so that a step has at most as many positions as one of the longest, more than half as
// many, and whatever divides the batch divides its rows. REQUIRES: batch >= 1, 1 <= edge <= longest.
inline std::int64_t rows_of_bucket(std::int64_t batch, std::int64_t longest, std::int64_t edge) {
  return batch * (longest / edge);
}

// The steps of an epoch that `rows` rows make, `each` of them a step: the last is filled up with empty rows, or
// dropped.
inline std::int64_t steps_of_bucket(std::int64_t rows, std::int64_t each, bool drop_remainder) {
  return drop_remainder ? rows / each : (rows + each - 1) / each;
}

struct EdgeRequest {
  std::int64_t shapes = 1;      // at most so many edges
  std::optional<double> waste;  // with as few edges as keep padding_share at or below it
  std::int64_t align = 1;       // edges are multiples of it, but for `longest`
  std::int64_t longest = 0;     // no edge is above it, the model's context; 0: no limit
  // Of one row padded to an edge; must not fall as the edge grows. Unset: the edge itself, so that positions count.
  std::function<double(std::int64_t edge)> cost = {};
};

// The edges of least cost, ascending; fewer than `shapes` if more do not help. If no allowed number reaches `waste`,
// the edges of least cost. Empty if there are no rows.
// REQUIRES: shapes >= 1, align >= 1; longest is 0 or not below the longest length.
std::vector<std::int64_t> best_edges(const LengthHistogram& rows, const EdgeRequest& request);

// Powers of two, from the first that is not below `align` and the shortest length to the first not below the longest,
// and no bucket empty; the last is cut to `longest`.
std::vector<std::int64_t> power_of_two_edges(const LengthHistogram& rows, std::int64_t align, std::int64_t longest);

}  // namespace systole
