#pragma once
// The charts of `systole plan --on …` as text: those of --charts that a terminal can show.

#include "predict/plan/hardware_plan.h"
#include "predict/plan/scaled_plan.h"

namespace systole {

// All options by days and dollars, with the Pareto front. "": fewer than three have a price.
std::string front_drawing(const HardwarePlan& plan);
// The breakdown of step time, of the choice and the best options that lost. "": nothing lost.
std::string time_drawing(const HardwarePlan& plan);
// Tokens per second by chips. "": fewer than two sizes fit.
std::string scaling_drawing(const ScaledPlan& plan);

}  // namespace systole
