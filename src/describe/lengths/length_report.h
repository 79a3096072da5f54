#pragma once
// The ways to make rows of one shape, or of a few, out of texts of many lengths, side by side: padding all to the
// longest, buckets, powers of two, and packing several texts into a row. In positions computed, FLOPs, time and dollars
// of an epoch.

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "describe/lengths/bucket_edges.h"
#include "ground/base/document.h"
#include "ground/base/units.h"

namespace systole {

// What positions cost. Time is in proportion to FLOPs: each shape is taken to run at the same rate.
struct RowPrices {
  std::function<double(std::int64_t length)> flops = {};  // model FLOPs to train on one row; unset: unknown
  std::optional<FlopRate> rate;                           // of the planned machines
  std::optional<DollarsPerHour> dollars_per_hour;
};

struct LengthWay {
  std::string name;             // "padded to 256"
  std::vector<Bucket> buckets;  // of one shape: one
  std::optional<double> flops;  // of an epoch
  std::optional<Seconds> time;
  std::optional<Dollars> dollars;

  std::int64_t rows() const, positions() const;
};

struct LengthRequest {
  std::int64_t longest = 0;                          // tokens of the longest row: a model's context. REQUIRES: >= 1
  std::vector<std::int64_t> edges;                   // the buckets to show; empty: the best ones
  EdgeRequest best = {.shapes = 16, .waste = 0.05};  // which those are; its `longest` is the one above
  std::optional<std::int64_t> packed;                // rows, if texts are packed into rows of `longest`
  RowPrices prices = {};
};

struct LengthReport {
  LengthHistogram rows;  // of the pieces that fit `longest`
  std::int64_t longest = 0;
  std::vector<std::int64_t> edges;
  std::vector<std::pair<std::int64_t, double>> by_shapes;  // the least padding share with 1, 2, 4, .. buckets
  std::vector<LengthWay> ways;  // "packed" if it is known, the buckets, powers of two, padded to the longest
  std::size_t bucketed = 0;     // which of them is the buckets
  std::span<const Bucket> buckets() const { return ways[bucketed].buckets; }
  double waste() const { return padding_share(buckets()); }
};

// REQUIRES: `texts` is not empty; given edges ascend, and the last holds the longest row.
LengthReport length_report(const LengthHistogram& texts, const LengthRequest& request);

// "mean 74, median 40, p90 166, p99 566, longest 7,475".
std::string length_stats(const LengthHistogram& texts);
// "least padding by the number of buckets: 1 84.3%, 2 60.1%, 4 33.0%".
std::string by_shapes_text(const LengthReport& report);
// The ways as a table; the buckets as a table, with how many of them hold 95% of the rows.
std::string ways_text(const LengthReport& report, int width);
std::string buckets_text(const LengthReport& report, int width);
// {"longest", "rows", "edges", "waste", "buckets_for_95_percent", "by_shapes", "ways": [..], "lengths": [[length, count], ..]}.
Node to_node(const LengthReport& report);

}  // namespace systole
