#pragma once
// The model of a published row, by its columns: what a family is follows from its feed-forward part, for that is what
// the columns tell apart.

#include "describe/spec/workload.h"
#include "predict/backtest/published_row.h"

namespace systole::backtest {

// Adds to `taken` what the row does not say, and what is taken in its place. Errors: unsupported: a reason in few
// words, by which rows are counted ("hybrid Mamba").
Result<ModelSpec> row_model(const PublishedRow& row, std::vector<std::string>& taken);

}  // namespace systole::backtest
