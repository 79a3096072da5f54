#pragma once
// Rows whose measured time their neighbours contradict.

#include <span>

#include "predict/backtest/published_row.h"

namespace systole::backtest {

// Neighbours have the same layout except for one property: the next smaller or larger microbatch that was measured, or
// how the optimizer is sharded.
constexpr std::size_t kLeastNeighbours = 2;
constexpr double kOutlierFactor = 1.5;

// True if the row took at least kOutlierFactor times as long as each of its neighbours, of which there are at least
// kLeastNeighbours. Predictions are not used. `group`: measured rows of one source, model, number of chips and batch,
// including `row`.
bool is_outlier(const PublishedRow& row, std::span<const PublishedRow* const> group);

}  // namespace systole::backtest
