#pragma once
// `systole plan WORKLOAD --on h100,v5p --scale 64,128,256`: the same training on more and more chips, and where to
// stop.

#include "operate/cli/plan_on.h"
#include "predict/plan/scaling.h"

namespace systole::cli {

struct ScaledPlan {
  Workload workload;  // as asked
  OfferRules rules;
  ScaleRequest request;
  std::vector<ScaleCurve> curves;
  std::string catalog_date, catalog_hash;
};

std::string scaled_plan_text(const ScaledPlan& plan, int width);
Node scaled_plan_node(const ScaledPlan& plan);

ExitCode plan_scale(const WorkloadArguments& arguments, const PlanOnOptions& options, Context& context);

}  // namespace systole::cli
