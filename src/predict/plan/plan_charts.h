#pragma once
// The charts of `systole plan --on … --charts FOLDER`, each an SVG.

#include "predict/plan/hardware_plan.h"
#include "predict/plan/scaled_plan.h"

namespace systole {

// Every option that was estimated, by days and dollars, with the Pareto front. "": none has a price.
std::string front_svg(const HardwarePlan& plan);
// The breakdown of step time, of the choice and the best options that lost.
std::string time_svg(const HardwarePlan& plan);
// Tokens per second by chips, with the line of perfect scaling.
std::string scaling_svg(const ScaledPlan& plan);

}  // namespace systole
