#pragma once
// Stalls: steps in which one category took more than a millisecond and more than three times its median.

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "describe/spec/run.h"

namespace systole {

struct Stalls {
  std::int64_t steps = 0, of = 0;  // stalled steps, and all steps
  Seconds took{};                  // total beyond the median
  Seconds longest{};
  std::int64_t longest_step = 0;
};

// Nothing if no step stalled, or if all stalls together are less than 1% of the steps' time.
std::optional<Stalls> find_stalls(std::span<const StepEnded> steps, Category category);

std::string to_string(
    const Stalls& stalls);  // "50 of 200 steps stalled, 2.20 s in all, the longest 48.3 ms at step 12"

}  // namespace systole
