#pragma once
// Cost of a job's nodes at catalog prices. An unlisted price is unknown, never 0: it is reported by name, and totals
// with it are unknown too.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ground/base/document.h"
#include "ground/base/units.h"
#include "ground/catalog/price.h"

namespace systole {

struct JobCost {
  std::int64_t least = 1, most = 1;  // number of nodes, or slices
  Price each;                        // per unit, on demand
  std::optional<Price> terms;        // per unit on the requested terms, if different
  std::optional<Seconds> time;       // run time: as planned, otherwise the limit of one allocation
  bool planned = false;              // `time` is planned
  bool bounded = true;               // `time` is a limit that ends the run
  bool endless = false;              // it serves until it is stopped
  std::vector<std::string> besides;  // items that are charged but not listed

  std::optional<DollarsPerHour> rate(const Price& price, std::int64_t count) const;
  // All nodes for the whole time. Nothing: a price or the time is unknown.
  std::optional<Dollars> total(const Price& price) const;
};

// "cost: 2 x a3-highgpu-8g in us-central1: $176.98/h on demand; 2 days at most: $8,495.04", as lines.
std::vector<std::string> cost_lines(const JobCost& cost);
Node cost_node(const JobCost& cost);  // for --json

}  // namespace systole
