#pragma once
// Detects divergence. Names the step, and ranks remedies by what the numbers suggest.
//
// A batch's loss is noisy in proportion to its value: that of eight rows is easily half that of the next eight, and
// the minimum of a thousand such losses reflects their number, not the model. So a loss is not compared with the lowest
// loss but with a bound: `factor` times the lowest level, where a level is a mean over about 32 steps. Excess over the
// bound must also accumulate: `away` sums ln(loss / bound), and restarts at 0 where it would be negative (a cumulative
// sum: E. S. Page, Continuous inspection schemes, Biometrika 41, 1954). At ln 1000 the run has diverged: after ten
// losses of twice the bound, or one of a thousand times the bound. Noise around a level mostly stays below the bound
// and accumulates nothing.

#include <optional>
#include <string>

#include "describe/spec/run.h"
#include "describe/spec/workload.h"
#include "ground/base/document.h"

namespace systole {

// Statistics of the losses so far. Checkpoints keep them, so a resumed run judges as if it had never stopped.
struct LossTrend {
  double first = 0;   // finite losses only, here and below; 0: none yet
  double level = 0;   // mean of the last losses
  double early = 0;   // mean of the logarithms of the first kLevelSteps: their level, robust against single losses
  double lowest = 0;  // lowest level; while it is early, of all losses so far
  double seen = 0;    // the least `lowest` so far; a loss that runs away has no part in it
  double away = 0;
  std::int64_t losses = 0;  // up to kLevelSteps

  static constexpr std::int64_t kLevelSteps = 32;
  // `factor`: the bound relative to the lowest level; 0: no bound. Small losses are noisy relative to their level, so
  // the bound is at least a third of the first loss: a diverging run passes that too.
  void add(double loss, double factor);
  bool ran_away() const;
};
Node to_node(const LossTrend& trend);
// Without a trend there, it begins with the next loss.
Result<LossTrend> trend_from(const Node& node);

// After a step. `trend` includes its loss; `skips`: consecutive steps with a gradient that was not finite, up to this
// one. Empty if all is well or the policy is to go on.
std::optional<std::string> divergence_of(const TrainSpec& train, const StepEnded& step, const LossTrend& trend,
                                         std::int64_t skips);

// After an evaluation: detects weights that give a loss that is not finite.
std::optional<std::string> divergence_of(const TrainSpec& train, const Evaluated& evaluated);

// After the last step of a run that evaluates nothing.
std::optional<std::string> divergence_at_end(const TrainSpec& train, const StepEnded& last);

}  // namespace systole
