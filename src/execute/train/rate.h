#pragma once
// The learning rate as a host function of progress: warmup from zero, then constant, cosine, linear, or
// warmup-stable-decay (Hu et al., arXiv:2404.06395: a stable stretch, then a linear decay).

#include <cstdint>
#include <optional>

#include "describe/spec/workload.h"

namespace systole {

// How far a run is. `fraction` of the whole, in [0, 1]: of steps, tokens or time, whichever ends the run.
struct Progress {
  std::int64_t step = 0;   // the step about to be taken, 0-based
  double fraction = 0;     // done before it
  double steps_total = 0;  // known, or estimated from the pace so far; > 0
};

double rate_at(const OptimizerSpec& optimizer, const Progress& progress);

}  // namespace systole
