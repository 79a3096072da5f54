#pragma once
// Steps in which one category took far longer than it usually does: more than a millisecond and three times its median.

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "describe/spec/run.h"

namespace systole {

struct Stalls {
  std::int64_t steps = 0, of = 0;  // steps that stalled, of how many
  Seconds took{};                  // beyond the median, all together
  Seconds longest{};
  std::int64_t longest_step = 0;
};

// Nothing when no step stalled, or when all stalls together are less than 1% of the steps' time.
std::optional<Stalls> find_stalls(std::span<const StepEnded> steps, Category category);

std::string to_string(
    const Stalls& stalls);  // "50 of 200 steps stalled, 2.20 s in all, the longest 48.3 ms at step 12"

}  // namespace systole
