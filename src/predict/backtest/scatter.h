#pragma once
// A scatter plot of predicted against measured step times: a dot per row, both axes logarithmic, the line of equality
// and a band of 15% on both sides. Colours are stacks. An SVG without scripts or embedded fonts.

#include <string>

#include "predict/backtest/scores.h"

namespace systole::backtest {

// Plots rows that have both times. `set`: only this set; empty: all.
std::string scatter_svg(const Scores& scores, std::string_view set);

}  // namespace systole::backtest
