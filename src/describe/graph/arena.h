#pragma once
// The arena of a Program: every value and every function's scratch gets its offset, from lifetimes over the actions.

#include "describe/graph/program.h"

namespace systole {

// Sets the offsets of values and scratches and the arena's size. Parameters, state, caches and staging live always;
// inputs and outputs during the whole schedules that use them; gradients and residuals from the first action that uses
// them until every action that follows comes after all that do; scratches the same, for each action by itself.
void plan_arena(Program& program);

// Parameters, state, caches and staging: there before a schedule and after it.
bool outlives_schedules(Residence residence);

}  // namespace systole
