#pragma once
// Scores of rows, and optionally held-out scores.

#include <span>
#include <string>
#include <vector>

#include "predict/backtest/report.h"
#include "predict/backtest/scores.h"
#include "predict/perf/stack.h"

namespace systole::backtest {

// The rows of several tables together. Errors: not_found; those of read_published; invalid: a repeated id, no row at
// all.
Result<std::vector<PublishedRow>> read_published_files(const std::vector<std::string>& paths);

// `scores`: by the given profiles. The others: by held-out profiles.
struct Judged {
  Scores scores;
  std::optional<Scores> source_left_out, stack_unseen;
  JudgedApart apart() const {
    return {source_left_out ? &*source_left_out : nullptr, stack_unseen ? &*stack_unseen : nullptr};
  }
};
// `apart`: also scores by profiles fitted without a row's source, and without its stack. Borrows the rows.
Judged judge(std::span<const PreparedRow> rows, std::span<const StackProfile> stacks, bool apart);

}  // namespace systole::backtest
