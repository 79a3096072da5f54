#pragma once
// The model of a published row, from its columns. The feed-forward column decides the family, because the columns
// distinguish families by nothing else.

#include "describe/spec/workload.h"
#include "predict/backtest/published_row.h"

namespace systole::backtest {

// Adds to `taken` what the row omits, and what is used instead. Errors: unsupported, with a reason in few words, by
// which rows are counted ("hybrid Mamba").
Result<ModelSpec> row_model(const PublishedRow& row, std::vector<std::string>& taken);

}  // namespace systole::backtest
