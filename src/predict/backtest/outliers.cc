#include "predict/backtest/outliers.h"

#include <algorithm>
#include <tuple>
#include <vector>

namespace systole::backtest {
namespace {

bool lie_alike(const PublishedRow& a, const PublishedRow& b) {
  const auto layout = [](const PublishedRow& row) {
    return std::tie(row.dp, row.fsdp, row.tp, row.pp, row.cp, row.ep, row.chunks, row.sequence_parallel, row.recompute,
                    row.dtype, row.attention);
  };
  return layout(a) == layout(b);
}

}  // namespace

bool is_outlier(const PublishedRow& row, std::span<const PublishedRow* const> group) {
  if (!row.microbatch || !row.step_seconds) return false;
  const PublishedRow *smaller = nullptr, *larger = nullptr;
  std::vector<const PublishedRow*> neighbours;
  for (const PublishedRow* other : group) {
    if (other == &row || !other->microbatch || !other->step_seconds || !lie_alike(row, *other)) continue;
    if (other->zero_stage != row.zero_stage) {
      if (other->microbatch == row.microbatch) neighbours.push_back(other);
    } else if (other->microbatch < row.microbatch) {
      if (smaller == nullptr || smaller->microbatch < other->microbatch) smaller = other;
    } else if (other->microbatch > row.microbatch) {
      if (larger == nullptr || other->microbatch < larger->microbatch) larger = other;
    }
  }
  for (const PublishedRow* next : {smaller, larger})
    if (next != nullptr) neighbours.push_back(next);
  return neighbours.size() >= kLeastNeighbours && std::ranges::all_of(neighbours, [&](const PublishedRow* neighbour) {
           return *row.step_seconds >= kOutlierFactor * *neighbour->step_seconds;
         });
}

}  // namespace systole::backtest
