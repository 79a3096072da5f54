#pragma once
// The mean step of rows of several lengths (data.buckets) over an epoch, in a plan for offered hardware.

#include <cstdint>
#include <span>
#include <string>

#include "describe/spec/plan.h"

namespace systole {

// Both count a step as full. REQUIRES: the steps of an epoch are known.
double mean_rows(std::span<const PlannedShape> shapes);
double mean_tokens(std::span<const PlannedShape> shapes);  // without padding

// "16, 32 or 64 tokens", "16 tokens".
std::string lengths_words(std::span<const PlannedShape> shapes);

}  // namespace systole
