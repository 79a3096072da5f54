#pragma once
// What a job's nodes cost at the prices of the catalog. What no list names is unknown, never 0: it is said by name, and
// what it would be a part of is unknown with it.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ground/base/document.h"
#include "ground/base/units.h"
#include "ground/catalog/price.h"

namespace systole {

struct JobCost {
  std::int64_t least = 1, most = 1;  // of nodes, or slices
  Price each;                        // of one, on demand
  std::optional<Price> terms;        // of one on the terms that were asked for, where those are others
  std::optional<Seconds> time;       // how long it runs: as planned, else as it is allowed at once
  bool planned = false;              // the former
  bool bounded = true;               // of the latter: it is ended then
  std::vector<std::string> besides;  // what is paid for and in no list

  std::optional<DollarsPerHour> rate(const Price& price, std::int64_t count) const;
  // Of all nodes, for the whole time. Nothing: a price or the time is not known.
  std::optional<Dollars> total(const Price& price) const;
};

// "cost: 2 x a3-highgpu-8g in us-central1: $176.98/h on demand; 2 days at most: $8,495.04", lines of it.
std::vector<std::string> cost_lines(const JobCost& cost);
Node cost_node(const JobCost& cost);  // for --json

}  // namespace systole
