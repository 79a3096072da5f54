#include "execute/train/rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace systole {
namespace {

// A portion as a fraction of the run.
double fraction_of(const Portion& portion, double steps_total) {
  return portion.steps > 0 ? static_cast<double>(portion.steps) / std::max(1.0, steps_total) : portion.fraction;
}

}  // namespace

double rate_at(const OptimizerSpec& optimizer, const Progress& progress) {
  const double at = std::clamp(progress.fraction, 0.0, 1.0), total = std::max(1.0, progress.steps_total);
  const double warmup = std::min(1.0, fraction_of(optimizer.warmup, total));
  // Warmup counts the step about to be taken, so that the first rate is not zero.
  const double next = std::min(1.0, at + 1.0 / total);
  if (warmup > 0 && next < warmup) return optimizer.rate * next / warmup;
  const double low = optimizer.final_rate * optimizer.rate, span = optimizer.rate - low;
  const double rest = warmup < 1 ? std::clamp((at - warmup) / (1 - warmup), 0.0, 1.0) : 1.0;
  switch (optimizer.schedule) {
    case OptimizerSpec::Schedule::constant: return optimizer.rate;
    case OptimizerSpec::Schedule::linear: return low + span * (1 - rest);
    case OptimizerSpec::Schedule::cosine: return low + span * 0.5 * (1 + std::cos(std::numbers::pi * rest));
    case OptimizerSpec::Schedule::warmup_stable_decay: {
      const double decay = std::min(1.0, fraction_of(optimizer.decay, total));
      const double left = 1 - at;
      return decay > 0 && left < decay ? low + span * left / decay : optimizer.rate;
    }
  }
  return optimizer.rate;
}

}  // namespace systole
