#pragma once
// The time of a pipeline: its stages' schedules played against each other, each with its own Program, so that what a
// stage waits for its neighbours is in it, and nothing is derived but from the actions.

#include <span>
#include <vector>

#include "describe/graph/program.h"
#include "predict/perf/estimate.h"

namespace systole {

struct StageOfTime {
  const Program* program = nullptr;
  const Estimate* estimate = nullptr;  // of it alone
};

// From the step's start to the end of the last action of any stage. A transfer begins when its sender has come to it,
// who goes on, and takes what its receiver's link takes; `serial`: the receiver does nothing else meanwhile. REQUIRES:
// the stages are in the order of the axis; their other coordinates are equal. Errors: Failure(internal) when they wait
// for each other.
Seconds time_of_stages(std::span<const StageOfTime> stages, std::string_view schedule, bool serial);

// A stage's estimate, with the time of every schedule that has transfers made the whole pipeline's; what that is more
// than its own is in by_function as "stages".
Estimate among_stages(std::span<const StageOfTime> stages, std::size_t stage, bool serial);

}  // namespace systole
