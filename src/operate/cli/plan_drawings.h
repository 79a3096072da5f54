#pragma once
// The charts of `systole plan --on …` as text: of what --charts draws, what a terminal can show.

#include "operate/cli/plan_scale.h"

namespace systole::cli {

// Days and dollars of all options, and the front that nothing beats. "": fewer than three have a price.
std::string front_drawing(const OfferedPlan& plan);
// Where a step's time goes, of the choice and the best of what lost. "": nothing lost.
std::string time_drawing(const OfferedPlan& plan);
// Tokens a second by chips. "": fewer than two sizes fit.
std::string scaling_drawing(const ScaledPlan& plan);

}  // namespace systole::cli
