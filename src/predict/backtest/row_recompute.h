#pragma once
// What a published row says that is computed again in backward, as a policy.

#include "describe/spec/workload.h"
#include "predict/backtest/published_row.h"

namespace systole::backtest {

// Errors: unsupported: a reason in few words, by which rows are counted.
Result<RecomputeSpec> row_recompute(const PublishedRow& row, const ModelSpec& model, std::vector<std::string>& taken);

}  // namespace systole::backtest
