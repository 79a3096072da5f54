#pragma once
// How a published row lay on its devices: the degrees of its columns, checked against how many there are, and gaps
// filled where only one number fills them.

#include "describe/spec/workload.h"
#include "predict/backtest/published_row.h"

namespace systole::backtest {

struct RowLayout {
  std::int64_t devices = 1;
  // They multiply to the devices. Ranks of the batch: replicas, and of each `parts` that store it together.
  std::int64_t stages = 1, replicas = 1, parts = 1, experts = 1, context = 1, tensor = 1;
  StoredInParts stored = StoredInParts::nothing;  // over `parts`
  std::int64_t chunks = 1;                        // of a stage
  std::int64_t microbatches = 1;                  // of a step

  std::int64_t batch_ranks() const { return replicas * parts * experts; }
};

// `devices_of_chip`: as software sees it; `compiled`: one compiler sees a step, which then is one microbatch unless it
// is said to accumulate or to have stages. Adds to `taken` what the row does not say, and what is taken in its place.
// Errors: unsupported: a reason in few words, by which rows are counted.
Result<RowLayout> row_layout(const PublishedRow& row, std::int64_t devices_of_chip, bool compiled,
                             std::vector<std::string>& taken);

}  // namespace systole::backtest
