#pragma once
// The same training on more and more chips, and where to stop.

#include <string>
#include <vector>

#include "ground/base/document.h"
#include "predict/plan/scaling.h"

namespace systole {

struct ScaledPlan {
  Workload workload;  // as asked
  OfferRules rules;
  ScaleRequest request;
  std::vector<ScaleCurve> curves;
  std::string catalog_date, catalog_hash;
};

// `shapes`: as HardwarePlan has them. REQUIRES: a model whose layers repeat. Errors: as scale.
Result<ScaledPlan> plan_scaled(const Workload& workload, std::vector<PlannedShape> shapes, OfferRules rules,
                               ScaleRequest request, CatalogTables& tables, const Catalog& catalog);

std::string scaled_plan_text(const ScaledPlan& plan, int width);  // scaled_plan_text.cc
Node scaled_plan_node(const ScaledPlan& plan);

}  // namespace systole
