#pragma once
// Rows whose measured time their neighbours contradict.

#include <span>

#include "predict/backtest/published_row.h"

namespace systole::backtest {

// Neighbours lie alike but for one thing: the next smaller or the next larger microbatch that was measured, or how the
// optimizer is sharded.
constexpr std::size_t kLeastNeighbours = 2;
constexpr double kOutlierFactor = 1.5;

// Took kOutlierFactor times as long, and more, as the slowest of kLeastNeighbours neighbours or more. No prediction has
// a part in it. `group`: measured rows of one source, model, number of chips and batch, `row` among them.
bool is_outlier(const PublishedRow& row, std::span<const PublishedRow* const> group);

}  // namespace systole::backtest
