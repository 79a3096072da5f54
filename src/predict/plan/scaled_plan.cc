#include "predict/plan/scaled_plan.h"

#include "predict/plan/hardware_plan.h"

namespace systole {
namespace {

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

Result<ScaledPlan> plan_scaled(const Workload& workload, std::vector<PlannedShape> shapes, OfferRules rules,
                               ScaleRequest request, CatalogTables& tables, const Catalog& catalog) {
  ScaledPlan plan{.workload = workload, .rules = std::move(rules), .request = std::move(request)};
  plan.catalog_date = catalog.date();
  plan.catalog_hash = catalog.hash();
  const int threads = ChoiceRequest().threads;
  const Composer composer(plan.workload, target_of_accelerators(), threads, std::move(shapes));
  plan.curves = TRY(scale({tables, catalog, plan.rules, composer, threads}, plan.request));
  return plan;
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

}  // namespace systole
