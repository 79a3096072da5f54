#pragma once
// Rules for meshes, stages and shardings that a workload may ask for; part of broken_rules.

#include <cstdint>
#include <string>
#include <vector>

#include "describe/spec/schema.h"

namespace systole {

std::vector<BrokenRule> broken_layout_rules(const Workload& workload);

// The largest number of microbatches for the batch. In exact training each logical shard has whole microbatches.
std::int64_t most_microbatches(const TrainSpec& train);

// Whether a divides b. True if either is 0, that is, was not read.
bool divides(std::int64_t a, std::int64_t b);

std::vector<std::int64_t> divisors_up_to(std::int64_t most, std::int64_t n);  // of n, ascending

// "1, 2, 4 or 8": the divisors of n, those up to 4,096.
std::string divisors_of(std::int64_t n);

}  // namespace systole
