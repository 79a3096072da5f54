#include "predict/backtest/row_layout.h"

#include <algorithm>
#include <cmath>

#include "predict/backtest/row_words.h"

namespace systole::backtest {
namespace {

Error refused(std::string reason) { return error(ErrorKind::unsupported, "{}", reason); }

// Data-parallel ranks: replicas, and the ranks that shard each. The columns dp and fsdp may both state the same group,
// or one of them may be missing.
struct BatchRanks {
  std::int64_t replicas = 1, parts = 1;
};
Result<BatchRanks> batch_ranks(const PublishedRow& row, std::int64_t ranks) {
  const std::int64_t replicas = row.dp.value_or(1), parts = row.fsdp.value_or(1);
  if (replicas * parts == ranks) return BatchRanks{replicas, parts};
  if (replicas == ranks && parts == replicas) return BatchRanks{1, parts};
  if (row.dp && row.fsdp) return refused("layout does not multiply to the devices");
  if (row.fsdp && ranks % parts == 0) return BatchRanks{ranks / parts, parts};
  if (!row.fsdp && !row.dp) return BatchRanks{ranks, 1};
  return refused("layout does not multiply to the devices");
}

// ZeRO stages: 1 shards the state, 2 also gradients, 3 also parameters.
ZeroStage stored_by(std::int64_t zero_stage) {
  switch (zero_stage) {
    case 0: return ZeroStage::nothing;
    case 1: return ZeroStage::state;
    case 2: return ZeroStage::gradients;
    default: return ZeroStage::parameters;
  }
}

std::int64_t zero_stage_of(const PublishedRow& row) {
  if (row.zero_stage) return *row.zero_stage;
  if (row.fsdp.value_or(1) > 1) return 3;
  return says(row.optimizer, "distributed") ? 1 : 0;
}

Result<std::int64_t> microbatches_of(const PublishedRow& row, const RowLayout& layout, bool compiled,
                                     std::vector<std::string>& taken) {
  const double rows = static_cast<double>(*row.batch) / static_cast<double>(layout.batch_ranks());
  if (rows < 1 - 1e-9) return refused("less than a row on each rank of the batch");
  std::optional<double> microbatch = row.microbatch;
  if (!microbatch && row.grad_accum.value_or(0) > 0) microbatch = rows / static_cast<double>(*row.grad_accum);
  if (compiled && layout.stages == 1 && row.grad_accum.value_or(1) <= 1) microbatch = rows;
  if (!microbatch && layout.stages == 1) {
    microbatch = rows;
    taken.emplace_back("all rows at once, for the microbatch is not told");
  }
  if (!microbatch) return refused("microbatch not told");
  return std::max<std::int64_t>(1, std::llround(rows / *microbatch));
}

}  // namespace

Result<RowLayout> row_layout(const PublishedRow& row, std::int64_t devices_of_chip, bool compiled,
                             std::vector<std::string>& taken) {
  if (!row.chips) return refused("number of chips not told");
  if (!row.batch) return refused("batch not told");
  if (row.chunks_untold) return refused("interleaved in a number of chunks that is not told");
  RowLayout layout;
  layout.devices = *row.chips * devices_of_chip;
  layout.tensor = row.tp.value_or(1);
  layout.stages = row.pp.value_or(1);
  layout.context = row.cp.value_or(1);
  layout.chunks = layout.stages > 1 ? row.chunks.value_or(1) : 1;
  const std::int64_t beside = layout.tensor * layout.stages * layout.context;
  if (beside < 1 || layout.devices % beside != 0) return refused("layout does not multiply to the devices");
  BatchRanks ranks = TRY(batch_ranks(row, layout.devices / beside));
  const std::int64_t zero_stage = zero_stage_of(row);
  layout.stored = stored_by(zero_stage);
  // Without a column for the group, ZeRO shards over all data-parallel ranks.
  if (zero_stage > 0 && ranks.parts == 1) ranks = {1, ranks.replicas};
  layout.replicas = ranks.replicas;
  layout.parts = ranks.parts;
  // Expert parallelism uses data-parallel ranks.
  layout.experts = row.experts.value_or(0) > 1 ? row.ep.value_or(1) : 1;
  if (layout.experts > 1) {
    std::int64_t& from = layout.replicas % layout.experts == 0 ? layout.replicas : layout.parts;
    if (from % layout.experts != 0) return refused("experts that do not divide the ranks of the batch");
    from /= layout.experts;
  }
  layout.microbatches = TRY(microbatches_of(row, layout, compiled, taken));
  return layout;
}

}  // namespace systole::backtest
