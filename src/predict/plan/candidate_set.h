#pragma once
// All candidates for a number of devices, with their first bounds (bounds.h). These depend on no chip and no price, so
// all offers of that size share one set.

#include <vector>

#include "predict/plan/bounds.h"

namespace systole {

struct CandidateSet {
  struct Entry {
    Candidate candidate;
    double flops = 0;  // lower bound on what a device executes in sequence
    Bytes arena;       // lower bound
  };
  std::vector<Entry> entries;  // the fewest FLOPs first
  std::vector<Bytes> arenas;   // of all, the smallest first
};

// `staged`: with pipelines.
CandidateSet candidate_set_of(const Composer& composer, const Bounds& bounds, std::int64_t devices, bool half_copies,
                              bool staged = true);

std::vector<Candidate> candidates_of(const Composer& composer, std::int64_t devices);

}  // namespace systole
