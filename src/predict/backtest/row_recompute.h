#pragma once
// The recomputation of a published row, as a policy.

#include "describe/spec/workload.h"
#include "predict/backtest/published_row.h"

namespace systole::backtest {

// Adds to `taken` what the row omits, and what is used instead. Errors: unsupported, with a reason in few words, by
// which rows are counted.
Result<RecomputeSpec> row_recompute(const PublishedRow& row, const ModelSpec& model, std::vector<std::string>& taken);

}  // namespace systole::backtest
