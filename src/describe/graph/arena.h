#pragma once
// The arena of a Program: every value and every function's scratch gets its offset, from lifetimes over the actions.

#include "describe/graph/program.h"

namespace systole {

// Sets the offsets of values and scratches and the arena's size. Parameters, state, caches and staging live always;
// inputs and outputs during the whole schedules that use them; gradients, residuals and scratches from the first action
// that writes them to the last that touches them. With more than one stream in a schedule, they live all of it.
void plan_arena(Program& program);

// Times of a block over all schedules: schedule s has the times [base, base + actions). For plan_arena and the
// verifier.
struct ActionTimeline {
  explicit ActionTimeline(const Program& program);
  std::vector<std::pair<int, int>> value_lives(int value) const;
  std::vector<std::pair<int, int>> scratch_lives(int function) const;

 private:
  const Program& program_;
  std::vector<int> base_;
  int end_ = 0;
};

}  // namespace systole
