#include "execute/train/divergence.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace systole {
namespace {

constexpr double kWayBack = 3;  // a third of the first loss

// What to try, likeliest first.
std::string remedies(const TrainSpec& train, const StepEnded& step) {
  const OptimizerSpec& optimizer = train.optimizer;
  std::vector<std::string> list;
  if (optimizer.warmup.steps == 0 && optimizer.warmup.fraction == 0)
    list.push_back("train.optimizer.warmup: 5% (there is none)");
  list.push_back(fmt::format("train.optimizer.rate: {:.2g} (a third of {:.2g})", optimizer.rate / 3, optimizer.rate));
  if (optimizer.clip == 0) list.push_back("train.optimizer.clip: 1 (gradients are not clipped)");
  if (train.precision.compute != DType::f32)
    list.push_back("train.precision: f32 (to see whether rounding is the cause)");
  if (std::isfinite(step.loss)) list.push_back("a look at the rows of this step with 'systole data show'");
  if (!std::isfinite(step.loss) || step.skipped)
    list.push_back(
        "'systole resume RUN --eager', or 'systole run WORKLOAD --eager': names the first value that is no number");
  std::string text;
  for (std::size_t i = 0; i < list.size(); ++i) text += fmt::format("\n  {}. {}", i + 1, list[i]);
  return text;
}

}  // namespace

std::optional<std::string> divergence_of(const TrainSpec& train, const StepEnded& step, const LossHistory& losses) {
  if (train.on_divergence == TrainSpec::OnDivergence::ignore) return std::nullopt;
  if (train.divergence_skips > 0 && losses.skips >= train.divergence_skips) {
    return fmt::format(
        "diverged at step {}: the gradient of {} steps in a row was not finite; the weights are those of step {}; "
        "try{}",
        step.step, losses.skips, step.step - losses.skips, remedies(train, step));
  }
  const double most = std::max(train.divergence_factor * losses.lowest, losses.first / kWayBack);
  if (train.divergence_factor > 0 && losses.lowest > 0 && step.loss > most) {
    return fmt::format("diverged at step {}: the loss is {:.4g}, the lowest was {:.4g}; try{}", step.step, step.loss,
                       losses.lowest, remedies(train, step));
  }
  return std::nullopt;
}

}  // namespace systole
