#pragma once
// Fuses the training schedule into one function, so that planner and compiler see the whole step.

#include "describe/program/program.h"

namespace systole {

constexpr const char* kStepFunction = "step";

// The Program with all functions of the schedule "train" fused into one, "step"; of steps of other lengths "step.64" of
// "train.64". Its inputs are the values that the schedule reads before it writes them; its outputs are those that
// outlive the schedule, are outputs of the Program, or occur in schedules that are no steps. All other values of the
// schedule become internal. No node is recomputed, merged or dropped. Several microbatches become a `repeat` that
// carries the gradient sums and slices the inputs from a stack. Other schedules are unchanged.
// Errors: Failure(unsupported) for pipeline stages, exact training, and microbatches that do not run one after the
// other.
Program fused_step(const Program& program);

}  // namespace systole
