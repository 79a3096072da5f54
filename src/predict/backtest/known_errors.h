#pragma once
// The errors of a backtest by kind of prediction, as plans tell them (predict/perf/known_errors.h).

#include "predict/backtest/report.h"
#include "predict/perf/known_errors.h"

namespace systole::backtest {

// "dense", "moe" or "fp8". REQUIRES: the row has a job.
std::string_view work_of(const PreparedRow& row);

// By stack, kind of work and accelerator, and over all of each, of rows without a defect. A plan tells of a layout that
// was chosen: rows of sweeps count where their stack has no others, and not for stacks unseen. REQUIRES: all three
// judge the same rows, and both of `apart` are there.
std::vector<KnownError> known_errors(const Scores& fitted, const JudgedApart& apart);

}  // namespace systole::backtest
