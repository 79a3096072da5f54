#include <algorithm>

#include "ground/base/counted.h"
#include "ground/draw/text_table.h"
#include "predict/plan/hardware_plan_text.h"
#include "predict/plan/prediction_error.h"
#include "predict/plan/scaled_plan.h"

namespace systole {
namespace {

std::string percent(double share) { return fmt::format("{:.0f}%", 100 * share); }

// The type of products, where it is narrower than the workload's own.
std::string products_words(const ScalePoint& point) {
  const ProductType type = point.offer->offered.kernels.products;
  return type == ProductType::bf16 || type == ProductType::f32 ? "" : fmt::format(", products in {}", name_of(type));
}

std::vector<std::string> cells(const ScalePoint& point, const std::string& hardware, bool stops) {
  if (!point.best) return {std::to_string(point.chips), hardware, "-", "-", "-", "-", "-", "-", "-", point.refused};
  const Estimated& e = *point.best;
  return {std::to_string(point.chips),
          hardware,
          to_string(Seconds(e.step.seconds)),
          fmt::format("{:.1f}%", 100 * e.utilisation),
          fmt::format("{:.4g}", point.tokens_per_second),
          percent(point.efficiency),
          point.added ? percent(*point.added) : "",
          percent(exposed_share(e.step)),
          million_tokens_text(point.million_tokens),
          to_string(e.candidate) + products_words(point) + (stops ? "  <- stop here" : "")};
}

// The first offer that fits determines the kind of the predictions.
std::string error_text(const ScaledPlan& plan, const ScaleCurve& curve) {
  const auto found = std::ranges::find_if(curve.points, [](const ScalePoint& p) { return p.best.has_value(); });
  if (found == curve.points.end()) return "";
  const PredictionKind kind = prediction_kind(plan.workload, found->offer->offered);
  const KnownError* known = known_error_of(kind, "step_time");
  return fmt::format("steps{}: {}", plus_minus(known), known_error_words(kind, known));
}

}  // namespace

std::string scaled_plan_text(const ScaledPlan& plan, int width) {
  std::string text = fmt::format("{}: {}; the stack is '{}'\n\n", plan.workload.name,
                                 plan.request.batch_scales
                                     ? fmt::format("{} a step on the smallest size, as many a chip on all others",
                                                   counted(plan.workload.train.batch, "row"))
                                     : fmt::format("{} a step on all sizes", counted(plan.workload.train.batch, "row")),
                                 plan.rules.stack.name);
  std::vector<std::vector<std::string>> rows;
  const std::size_t sizes = plan.curves.empty() ? 0 : plan.curves.front().points.size();
  for (std::size_t i = 0; i < sizes; ++i)
    for (const ScaleCurve& curve : plan.curves)
      rows.push_back(cells(curve.points[i], curve.hardware, curve.stop == i && i + 1 < sizes));
  text += table({"chips>", "of", "step>", "MFU>", "tokens/s>", "efficiency>", "of those added>", "waits>", "1M tokens>",
                 "layout"},
                rows, width);
  text +=
      "\nefficiency: tokens/s of a chip, over those of the smallest size; of those added: the same of the chips beyond "
      "the "
      "largest smaller size that pays; waits: exposed messages, of the step\n";
  const auto staged = [](const ScalePoint& point) { return point.best && point.best->candidate.staged(); };
  if (std::ranges::any_of(plan.curves, [&](const ScaleCurve& c) { return std::ranges::any_of(c.points, staged); }))
    text += fmt::format("pipe needs {}\n", kPipelineNeeds);
  text += "\n";
  for (const ScaleCurve& curve : plan.curves) {
    text += curve.stop ? fmt::format("{}: stop at {}: {}\n", curve.hardware,
                                     counted(curve.points[*curve.stop].chips, "chip"), curve.reason)
                       : fmt::format("{}: {}\n", curve.hardware, curve.reason);
    if (const std::string known = error_text(plan, curve); !known.empty()) text += "  " + known + "\n";
  }
  return text;
}

}  // namespace systole
