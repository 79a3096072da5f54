#pragma once
// The errors of a backtest by kind of prediction, as plans print them (predict/perf/known_errors.h).

#include "predict/backtest/report.h"
#include "predict/perf/known_errors.h"

namespace systole::backtest {

// Errors by stack, kind of work and accelerator, and over all accelerators, of rows without a defect. A plan predicts a
// layout that was chosen; so rows of sweeps count only for a kind without other rows, and never for unseen stacks.
// REQUIRES: all three score the same rows, and both of `apart` are there.
std::vector<KnownError> known_errors(const Scores& fitted, const JudgedApart& apart);

}  // namespace systole::backtest
