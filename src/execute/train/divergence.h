#pragma once
// When a run is beyond help, and what to try: the step is named, the remedies ranked by what the numbers suggest.

#include <optional>
#include <string>

#include "describe/spec/run.h"
#include "describe/spec/workload.h"

namespace systole {

// Of the steps until now, this one among them.
struct LossHistory {
  double first = 0, lowest = 0;  // finite ones; 0: none yet
  std::int64_t skips = 0;        // steps in a row whose gradient was not finite
};

// Nothing while all is well or the policy is to go on. A loss that has become small is noisy beside what it was at its
// lowest, so what runs away is well on its way back to the first.
std::optional<std::string> divergence_of(const TrainSpec& train, const StepEnded& step, const LossHistory& losses);

}  // namespace systole
