#pragma once
// The time of a pipeline: simulates the schedules of all stages together, each with its own Program. It includes the
// time that a stage waits for its neighbours, and follows from the actions alone.

#include <span>

#include "describe/program/program.h"
#include "predict/perf/estimate.h"

namespace systole {

struct StageOfTime {
  const Program* program = nullptr;
  const Estimate* estimate = nullptr;  // of this stage alone
};

// From the step's start to the end of the last action of any stage. A receive begins when its message has been sent and
// takes the time of the receiver's link; the sender does not wait. `serial`: the receiver does nothing else meanwhile.
// REQUIRES: stages in the order of their axis, with equal other coordinates. Errors: Failure(internal) on deadlock.
Seconds time_of_stages(std::span<const StageOfTime> stages, std::string_view schedule, bool serial);

// A stage's estimate, in which every schedule with transfers takes the time of the whole pipeline. The excess over the
// stage's own time is in by_function as "stages".
Estimate among_stages(std::span<const StageOfTime> stages, std::size_t stage, bool serial);

}  // namespace systole
