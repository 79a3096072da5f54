#pragma once
// All functions of a schedule as one: what one writes and the next reads becomes a value inside, so that a compiler may
// plan over the whole step. Inputs are what the schedule reads before it writes it; outputs are what outlives it
// (parameters, state, what the host reads), each in the place of the input of the same value where there is one.

#include "describe/graph/program.h"
#include "describe/stablehlo/module.h"

namespace systole::stablehlo {

// "train" of one stage and one microbatch, "evaluate", "snapshot". It has no placement: nobody but a compiler runs it.
// Errors: Failure(unsupported) for a schedule of several microbatches or exact training's turns, by name: those are
// lowered function by function.
Function joined(const Program& program, const Schedule& schedule);

// The schedule as one module.
Module lower_step(const Program& program, const Schedule& schedule, const LowerOptions& options = {});

}  // namespace systole::stablehlo
