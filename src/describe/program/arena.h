#pragma once
// The arena of a Program: assigns an offset to every value and every function's scratch, from lifetimes over actions.

#include "describe/program/program.h"

namespace systole {

// Sets the offsets of values and scratches, and the arena's size. Lifetimes:
//   parameters, state, caches, staging  always
//   inputs, outputs                     the whole of each schedule that uses them
//   gradients, residuals                from the first action that uses them until all later actions of the list are
//                                       ordered after every user
//   scratches                           the same, for each action by itself
void plan_arena(Program& program);

// True for parameters, state, caches and staging: they hold data before and after a schedule.
bool outlives_schedules(Residence residence);

}  // namespace systole
