#pragma once
// The set of rows that a row is scored with, and its known defect. A row with a defect is not left out: it is scored
// separately.

#include <string>

#include "predict/backtest/predicted_row.h"

namespace systole::backtest {

// Names of the sets, in the order of reports.
std::span<const std::string_view> row_sets();

// One of row_sets(): a large sweep is a set of its own; then come mixtures of experts, and products below 16 bits; the
// rest is divided into rows of a stack with its own profile, and others.
std::string_view set_of(const PreparedRow& row);
// True for a sweep, which has all layouts, even those that nobody would choose.
bool is_sweep(std::string_view set);

// The defect that its table states or its own columns show, in few words; "" if none.
std::string_view defect_of(const PreparedRow& row);

// True if measured on a machine in which its owner later found and repaired a fault.
bool before_a_repair(const PublishedRow& row);

}  // namespace systole::backtest
