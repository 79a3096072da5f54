#include "operate/cli/plan_scale.h"

#include <algorithm>

#include "ground/base/counted.h"
#include "ground/base/text_file.h"
#include "operate/cli/catalog_view.h"
#include "operate/cli/plan_charts.h"
#include "operate/cli/plan_drawings.h"
#include "operate/cli/plan_on_text.h"
#include "operate/cli/prediction_error.h"
#include "operate/cli/printer.h"

namespace systole::cli {
namespace {

std::string percent(double share) { return fmt::format("{:.0f}%", 100 * share); }

std::string million_text(const ScalePoint& point) {
  return point.million_tokens ? fmt::format("${:.3g}", point.million_tokens->count()) : "unknown";
}

// Narrower than the workload's own.
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
          million_text(point),
          to_string(e.candidate) + products_words(point) + (stops ? "  <- stop here" : "")};
}

// The first offer of it that fits says of what kind its predictions are.
std::string error_text(const ScaledPlan& plan, const ScaleCurve& curve) {
  const auto found = std::ranges::find_if(curve.points, [](const ScalePoint& p) { return p.best.has_value(); });
  if (found == curve.points.end()) return "";
  const PredictionKind kind = prediction_kind(plan.workload, found->offer->offered);
  const KnownError* known = known_error_of(kind, "step_time");
  return fmt::format("steps{}: {}", plus_minus(known), known_error_words(kind, known));
}

Node point_node(const ScalePoint& point) {
  Node node = Node::map({{"chips", point.chips}, {"batch", point.batch}});
  if (!point.best) return node.set("refused", point.refused);
  const Estimated& e = *point.best;
  return node.set("offer", point.offer->offered.name)
      .set("target", point.offer->target)
      .set("layout", to_string(e.candidate))
      .set("step_seconds", e.step.seconds)
      .set("model_flops_utilisation", e.utilisation)
      .set("tokens_per_second", point.tokens_per_second)
      .set("efficiency", point.efficiency)
      .set("efficiency_of_added_chips", point.added ? Node(*point.added) : Node())
      .set("exposed_share", exposed_share(e.step))
      .set("dollars_per_hour", point.offer->offered.price ? Node(point.offer->offered.price->count()) : Node())
      .set("dollars_per_million_tokens", point.million_tokens ? Node(point.million_tokens->count()) : Node());
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

Node scaled_plan_node(const ScaledPlan& plan) {
  Node curves = Node::sequence();
  for (const ScaleCurve& curve : plan.curves) {
    Node points = Node::sequence();
    for (const ScalePoint& point : curve.points) points.push(point_node(point));
    curves.push(Node::map({{"hardware", curve.hardware},
                           {"stop_at_chips", curve.stop ? Node(curve.points[*curve.stop].chips) : Node()},
                           {"reason", curve.reason},
                           {"points", std::move(points)}}));
  }
  return Node::map({{"systole_scaled_plan", 1},
                    {"catalog_date", plan.catalog_date},
                    {"catalog_hash", plan.catalog_hash},
                    {"stack", plan.rules.stack.name},
                    {"batch_scales", plan.request.batch_scales},
                    {"efficiency_that_pays", kPaying},
                    {"curves", std::move(curves)}});
}

ExitCode plan_scale(const WorkloadArguments& arguments, const PlanOnOptions& options, Context& context) {
  ScaledPlan plan;
  for (const std::string& several : options.targets)
    for (std::size_t from = 0; from <= several.size();) {
      const std::size_t end = std::min(several.find(',', from), several.size());
      plan.request.hardware.push_back(several.substr(from, end - from));
      from = end + 1;
    }
  plan.request.sizes = options.scale;
  plan.request.batch_scales = options.scale_batch;
  CatalogView view = open_catalog_view(context.clock).value();
  plan.workload = load_workload(arguments).value().workload;
  plan.rules = offer_rules(options, plan.workload).value();
  check_layers(arguments, plan.workload).value();
  plan.catalog_date = view.catalog.date();
  plan.catalog_hash = view.catalog.hash();
  context.out.progress(fmt::format("{} sizes", plan.request.hardware.size() * plan.request.sizes.size()));
  const int threads = ChoiceRequest().threads;
  const Composer composer(plan.workload, target_of_accelerators(), threads);
  plan.curves = scale({view.tables, view.catalog, plan.rules, composer, threads}, plan.request).value();
  context.out.end_progress();
  warn_of_left_out(plan.workload, context);
  context.out.prose((context.out.quiet() ? "" : scaling_drawing(plan)) + scaled_plan_text(plan, context.out.width()));
  context.out.json(scaled_plan_node(plan));
  if (const std::string svg = scaling_svg(plan); !options.charts.empty() && !svg.empty())
    write_text_file(options.charts + "/scaling.svg", svg).value();
  const bool any = std::ranges::any_of(plan.curves, [](const ScaleCurve& curve) { return curve.stop.has_value(); });
  return any ? ExitCode::done : ExitCode::no;
}

}  // namespace systole::cli
