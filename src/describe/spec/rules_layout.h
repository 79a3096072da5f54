#pragma once
// Which meshes, stages and shardings a workload may ask for; part of what broken_rules looks over.

#include <cstdint>
#include <string>
#include <vector>

#include "describe/spec/schema.h"

namespace systole {

std::vector<Broken> broken_layout_rules(const Workload& workload);

// The most microbatches that its batch may be cut into: of exact training a logical shard has whole ones.
std::int64_t most_microbatches(const TrainSpec& train);

// "1, 2, 4 or 8": the divisors of n, those up to 4,096.
std::string divisors_of(std::int64_t n);

}  // namespace systole
