#include "execute/train/divergence.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace systole {
namespace {

constexpr double kWayBack = 3;      // a third of the first loss
constexpr double kAway = 1000;      // times the bound, in one loss or accumulated
constexpr double kNothing = 1e-12;  // times the first loss: the logarithm of less means nothing

// Remedies, likeliest first. `finite`: loss and gradient are finite.
std::string remedies(const TrainSpec& train, bool finite) {
  const OptimizerSpec& optimizer = train.optimizer;
  std::vector<std::string> list;
  if (optimizer.warmup.steps == 0 && optimizer.warmup.fraction == 0)
    list.push_back("train.optimizer.warmup: 5% (there is none)");
  list.push_back(fmt::format("train.optimizer.rate: {:.2g} (a third of {:.2g})", optimizer.rate / 3, optimizer.rate));
  if (optimizer.clip == 0) list.push_back("train.optimizer.clip: 1 (gradients are not clipped)");
  if (train.precision.compute != DType::f32)
    list.push_back("train.precision: f32 (to see whether rounding is the cause)");
  if (finite) list.push_back("a look at the rows of this step with 'systole data show'");
  if (!finite)
    list.push_back(
        "'systole resume RUN --eager', or 'systole run WORKLOAD --eager': names the first value that is no number");
  std::string text;
  for (std::size_t i = 0; i < list.size(); ++i) text += fmt::format("\n  {}. {}", i + 1, list[i]);
  return text;
}

std::string no_number(const TrainSpec& train, std::int64_t step, const char* what) {
  return fmt::format(
      "diverged at step {}: the {} is not a number: a weight is none either, or too large; begin again, or from an "
      "earlier checkpoint; try{}",
      step, what, remedies(train, false));
}

}  // namespace

void LossTrend::add(double loss, double factor) {
  if (!std::isfinite(loss)) return;
  if (first == 0) first = loss;
  const double least = std::max(first * kNothing, std::numeric_limits<double>::min());
  const double x = std::log(std::max(loss, least));
  if (losses > 0 && factor > 0)
    away = std::max(0.0, away + x - std::log(std::max({factor * lowest, first / kWayBack, least})));
  const bool whole = losses == kLevelSteps;
  losses = std::min(losses + 1, kLevelSteps);
  level += (loss - level) / static_cast<double>(losses);
  if (!whole) early += (x - early) / static_cast<double>(losses);
  lowest = whole ? std::min(lowest, level) : losses == kLevelSteps ? level : std::exp(early);
  seen = losses == 1 ? lowest : std::min(seen, lowest);
}

bool LossTrend::ran_away() const { return away >= std::log(kAway); }

Node to_node(const LossTrend& trend) {
  return Node::map({{"first", trend.first},
                    {"level", trend.level},
                    {"early", trend.early},
                    {"lowest", trend.lowest},
                    {"seen", trend.seen},
                    {"away", trend.away},
                    {"losses", trend.losses}});
}

Result<LossTrend> trend_from(const Node& node) {
  LossTrend trend;
  trend.first = TRY(TRY(node.get("first"))->as_double());
  trend.level = TRY(TRY(node.get("level"))->as_double());
  trend.early = TRY(TRY(node.get("early"))->as_double());
  trend.lowest = TRY(TRY(node.get("lowest"))->as_double());
  const Node* seen = node.find("seen");  // older checkpoints lack it
  trend.seen = seen != nullptr ? TRY(seen->as_double()) : trend.lowest;
  trend.away = TRY(TRY(node.get("away"))->as_double());
  trend.losses = TRY(TRY(node.get("losses"))->as_int(0));
  return trend;
}

std::optional<std::string> divergence_of(const TrainSpec& train, const StepEnded& step, const LossTrend& trend,
                                         std::int64_t skips) {
  if (train.on_divergence == TrainSpec::OnDivergence::ignore) return std::nullopt;
  const bool finite = std::isfinite(step.loss) && !step.skipped;
  if (train.divergence_skips > 0 && skips >= train.divergence_skips) {
    return fmt::format(
        "diverged at step {}: the gradient of {} steps in a row was not finite; the weights are those of step {}; "
        "try{}",
        step.step, skips, step.step - skips, remedies(train, finite));
  }
  if (train.divergence_factor > 0 && trend.ran_away()) {
    return fmt::format("diverged at step {}: the loss is {:.4g}, its lowest level was {:.4g}; try{}", step.step,
                       step.loss, trend.seen, remedies(train, finite));
  }
  return std::nullopt;
}

std::optional<std::string> divergence_of(const TrainSpec& train, const Evaluated& evaluated) {
  if (train.on_divergence == TrainSpec::OnDivergence::ignore || std::isfinite(evaluated.loss)) return std::nullopt;
  return no_number(train, evaluated.step, "held-out loss");
}

std::optional<std::string> divergence_at_end(const TrainSpec& train, const StepEnded& last) {
  if (train.on_divergence == TrainSpec::OnDivergence::ignore || std::isfinite(last.loss)) return std::nullopt;
  return no_number(train, last.step, "loss of the last step");
}

}  // namespace systole
