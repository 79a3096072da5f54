#include "operate/cli/plan_scale.h"

#include <algorithm>

#include "ground/base/text_file.h"
#include "predict/plan/plan_charts.h"
#include "predict/plan/plan_drawings.h"

namespace systole::cli {
namespace {

// The hardware of --on; nothing is asked of a target here.
std::vector<std::string> each_of(const std::vector<std::string>& on) {
  NamedOn named = named_on(on);
  if (!named.targets.empty())
    fail(error(ErrorKind::invalid, "--scale sets hardware beside each other, and --on {} is what runs a workload",
               named.targets.front()->name)
             .hinted("--on h100,v5p --scale 64,128"));
  return std::move(named.hardware);
}

}  // namespace

ExitCode plan_scale(const WorkloadArguments& arguments, const LoadedWorkload& loaded, const PlanOnOptions& options,
                    Context& context) {
  const Workload& workload = loaded.workload;
  ScaleRequest request;
  request.hardware = each_of(options.targets);
  request.sizes = options.scale;
  request.batch_scales = options.scale_batch;
  CatalogView view = open_catalog_view(context.clock).value();
  OfferRules rules = placed_rules(options, loaded).value();
  check_layers(arguments, workload).value();
  std::vector<PlannedShape> shapes = built_shapes(arguments, loaded).value();
  context.out.progress(fmt::format("{} sizes", request.hardware.size() * request.sizes.size()));
  const ScaledPlan plan =
      plan_scaled(workload, std::move(shapes), std::move(rules), std::move(request), view.tables, view.catalog).value();
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
