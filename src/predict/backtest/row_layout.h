#pragma once
// The layout of a published row on its devices: the degrees of its columns, checked against the number of devices.
// Missing degrees are filled in if only one value fits.

#include "describe/spec/workload.h"
#include "predict/backtest/published_row.h"

namespace systole::backtest {

struct RowLayout {
  std::int64_t devices = 1;
  // Their product is `devices`. Data-parallel ranks are replicas × parts × experts; ZeRO shards over `parts`.
  std::int64_t stages = 1, replicas = 1, parts = 1, experts = 1, context = 1, tensor = 1;
  ZeroStage stored = ZeroStage::nothing;  // what is sharded over `parts`
  std::int64_t chunks = 1;                // per stage
  std::int64_t microbatches = 1;          // per step

  std::int64_t batch_ranks() const { return replicas * parts * experts; }
};

// `devices_of_chip`: devices that software sees per chip. `compiled`: the step is compiled as a whole; it is then one
// microbatch, unless the row states accumulation or stages. Adds to `taken` what the row omits, and what is used
// instead. Errors: unsupported, with a reason in few words, by which rows are counted.
Result<RowLayout> row_layout(const PublishedRow& row, std::int64_t devices_of_chip, bool compiled,
                             std::vector<std::string>& taken);

}  // namespace systole::backtest
