#pragma once
// A plan of serving as text and as a document.

#include <functional>
#include <string>

#include "ground/base/document.h"
#include "predict/serving/serving_plan.h"

namespace systole {

// The best row in full, then a table of all. `bold`: how a heading is printed.
std::string serving_plan_text(const ServingPlan& plan, int width,
                              const std::function<std::string(std::string_view)>& bold);

// {"serving": {...}}: numbers with their intervals as [low, high], seconds and bytes; null: unknown.
Node serving_plan_node(const ServingPlan& plan);

}  // namespace systole
