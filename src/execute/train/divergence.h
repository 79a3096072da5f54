#pragma once
// When a run is beyond help, and what to try: the step is named, the remedies ranked by what the numbers suggest.

#include <optional>
#include <string>

#include "describe/spec/run.h"
#include "describe/spec/workload.h"

namespace systole {

// Nothing while all is well or the policy is to go on. `skips`: steps in a row whose gradient was not finite.
std::optional<std::string> divergence_of(const TrainSpec& train, const StepEnded& step, double lowest_loss,
                                         std::int64_t skips);

}  // namespace systole
