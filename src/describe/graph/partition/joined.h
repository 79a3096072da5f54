#pragma once
// A training step in one function: what one function of the schedule wrote for the next becomes a value inside, so that
// whoever plans or compiles sees the whole step.

#include "describe/graph/program.h"

namespace systole {

constexpr const char* kStepFunction = "step";

// The Program with the functions of the schedule "train" as one, "step", which takes what they read before they wrote
// it and gives what outlives the schedule; what lived between them alone is gone from the values. Nothing is computed
// anew, merged or dropped. Of several microbatches the actions of each are a `repeat`, which carries the sums of
// gradients, and takes the microbatches' inputs from a stack. Other schedules stay as they are.
// Errors: Failure(unsupported) for stages, exact training's turns, and microbatches that are not done one after the
// other.
Program joined(const Program& program);

}  // namespace systole
