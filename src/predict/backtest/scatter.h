#pragma once
// Predicted against measured step times as a picture: a dot a row, both axes by powers of ten, the line where they are
// equal and a band of 15% on both sides. Colours tell stacks apart. An SVG without scripts or fonts of its own.

#include <string>

#include "predict/backtest/scores.h"

namespace systole::backtest {

// Of rows that have both. `set`: of this one alone; empty: all.
std::string scatter_svg(const Scores& scores, std::string_view set);

}  // namespace systole::backtest
