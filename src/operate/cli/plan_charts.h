#pragma once
// The charts of `systole plan --on … --charts FOLDER`, each an SVG.

#include "operate/cli/plan_scale.h"

namespace systole::cli {

// Every option that was looked at by days and dollars, with the front that nothing beats. "": none has a price.
std::string front_svg(const OfferedPlan& plan);
// Where a step's time goes, of the choice and the best of what lost.
std::string time_svg(const OfferedPlan& plan);
// Tokens a second by chips, beside what would be without loss.
std::string scaling_svg(const ScaledPlan& plan);

// Makes the folder. Errors: io, with the path.
Status make_chart_folder(const std::string& folder);

}  // namespace systole::cli
