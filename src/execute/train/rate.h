#pragma once
// The learning rate as a host function of progress: warmup from zero, then constant, cosine, linear, or
// warmup-stable-decay (Hu et al., arXiv:2404.06395: constant, then a linear decay).

#include <cstdint>
#include <optional>

#include "describe/spec/workload.h"

namespace systole {

// Progress of a run. `fraction` in [0, 1]: of steps, tokens or time, whichever ends the run.
struct Progress {
  std::int64_t step = 0;   // the next step, 0-based
  double fraction = 0;     // done before `step`
  double steps_total = 0;  // known, or estimated from the pace so far; > 0
};

double rate_at(const OptimizerSpec& optimizer, const Progress& progress);

}  // namespace systole
