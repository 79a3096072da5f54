#pragma once
// When a run is beyond help, and what to try: the step is named, the remedies ranked by what the numbers suggest.
//
// A batch's loss is noisy in proportion to itself: of eight rows it is easily half of what the next eight have, and the
// lowest of a thousand such losses says how many there were, not how well the model does. So a loss is not held against
// the lowest one but against the lowest level, a mean over about 32 steps; and being above the bound must add up.
// `away` sums ln(loss / bound), and begins at 0 again where it would be less (a cumulative sum: E. S. Page, Continuous
// inspection schemes, Biometrika 41, 1954). At ln 1000 the run has diverged: after ten losses of twice the bound, or
// after one a thousand times as high. Noise about a level is mostly below `factor` times its lowest, and adds nothing
// up.

#include <optional>
#include <string>

#include "describe/spec/run.h"
#include "describe/spec/workload.h"
#include "ground/base/document.h"

namespace systole {

// What the losses until now say; kept with checkpoints, so that who goes on judges as if the run had never stopped.
struct LossTrend {
  double first = 0;   // finite ones alone, here and below; 0: none yet
  double level = 0;   // the mean of the last ones
  double early = 0;   // that of the logarithms of the first kLevelSteps: their level, which no one of them moves far
  double lowest = 0;  // level; while it is early, of all losses so far
  double seen = 0;    // the least that `lowest` ever was: a loss that runs away has no part in it
  double away = 0;
  std::int64_t losses = 0;  // up to kLevelSteps

  static constexpr std::int64_t kLevelSteps = 32;
  // `factor`: above the lowest level; 0: nothing is held against it. A loss that has become small is noisy beside its
  // level, so the bound is at least a third of the first: what runs away is well on its way back.
  void add(double loss, double factor);
  bool ran_away() const;
};
Node to_node(const LossTrend& trend);
// Nothing of a trend there: it begins with the next loss.
Result<LossTrend> trend_from(const Node& node);

// After a step. `trend`: its loss among it; `skips`: steps in a row whose gradient was not finite, to this one.
// Nothing while all is well or the policy is to go on.
std::optional<std::string> divergence_of(const TrainSpec& train, const StepEnded& step, const LossTrend& trend,
                                         std::int64_t skips);

// After an evaluation, which changes nothing and skips nothing: weights of which no number comes.
std::optional<std::string> divergence_of(const TrainSpec& train, const Evaluated& evaluated);

// After the last step of a run that evaluates nothing.
std::optional<std::string> divergence_at_end(const TrainSpec& train, const StepEnded& last);

}  // namespace systole
