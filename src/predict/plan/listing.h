#pragma once
// All candidates on so many devices with their first bounds (bounds.h), which no chip and no price changes: made once
// for all offers of that size.

#include <vector>

#include "predict/plan/bounds.h"

namespace systole {

struct Listing {
  struct Entry {
    Candidate candidate;
    double flops = 0;  // that a device does one after the other, at least
    Bytes arena;       // at least
  };
  std::vector<Entry> entries;  // the fewest FLOPs first
  std::vector<Bytes> arenas;   // of all, the smallest first
};

// `staged`: pipelines too.
Listing listing_of(const Composer& composer, const Bounds& bounds, std::int64_t devices, bool half_copies,
                   bool staged = true);

std::vector<Candidate> candidates_of(const Composer& composer, std::int64_t devices);

}  // namespace systole
