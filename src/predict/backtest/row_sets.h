#pragma once
// Which set of rows a row is judged with, and what is known to be wrong with it. A row with a defect is not left out:
// it is judged apart.

#include <string>

#include "predict/backtest/predicted_row.h"

namespace systole::backtest {

// Names of the sets, in the order of reports.
std::span<const std::string_view> row_sets();

// One of row_sets(): large sweeps are sets of their own; then mixtures of experts, products below 16 bits, and of the
// rest those of a stack with a profile of its own, and the others.
std::string_view set_of(const PreparedRow& row);
// Of a sweep, which has all layouts, those too that nobody would choose.
bool is_sweep(std::string_view set);

// What its table says, or its own columns show, to be wrong with it, in few words; "" for nothing.
std::string_view defect_of(const PreparedRow& row);

// Measured on a machine that its owner then found a fault in, and repaired.
bool before_a_repair(const PublishedRow& row);

}  // namespace systole::backtest
