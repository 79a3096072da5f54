// Compares crashed points with those that are predicted to run out of memory.

#include <algorithm>
#include <tuple>

#include "predict/backtest/scores.h"

namespace systole::backtest {
namespace {

// A layout without its microbatch.
using LayoutKey =
    std::tuple<std::string, std::string, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t>;
LayoutKey layout_of(const PublishedRow& row) {
  return {row.source,         row.model,          row.chips.value_or(0),     row.tp.value_or(1),
          row.pp.value_or(1), row.dp.value_or(1), row.zero_stage.value_or(0)};
}
using Measured = std::map<double, double>;  // microbatch → GiB

// Memory extrapolated from neighbours with smaller microbatches: by the line through the first and the last of them; if
// there is only one, half of its memory is assumed to grow with the microbatch.
std::optional<double> expected_gib(const Measured& measured, double microbatch) {
  const auto end = measured.lower_bound(microbatch);
  if (end == measured.begin()) return std::nullopt;
  const auto& [least, least_gib] = *measured.begin();
  const auto& [most, most_gib] = *std::prev(end);
  if (least == most) return least_gib / 2 * (1 + microbatch / least);
  return most_gib + (most_gib - least_gib) / (most - least) * (microbatch - most);
}

}  // namespace

MemoryVerdicts memory_verdicts(std::span<const ScoredRow* const> rows) {
  std::map<LayoutKey, Measured> measured;
  for (const ScoredRow* row : rows) {
    const PublishedRow& of = row->row->row;
    if (of.memory_gib && of.microbatch) measured[layout_of(of)][*of.microbatch] = *of.memory_gib;
  }
  MemoryVerdicts verdicts;
  for (const ScoredRow* row : rows) {
    if (!row->predicted) continue;
    const PublishedRow& of = row->row->row;
    const double capacity = row->row->made->cluster.chip.capacity / kGiB;
    const bool fits = row->predicted->memory_gib <= kUsableMemory * capacity;
    if (!of.crashed) {
      if (!of.memory_gib) continue;
      ++verdicts.ran;
      verdicts.called_fitting += fits ? 1 : 0;
      continue;
    }
    const std::optional<double> expected =
        of.microbatch ? expected_gib(measured[layout_of(of)], *of.microbatch) : std::nullopt;
    if (!expected || *expected <= capacity) {
      ++verdicts.crashed_otherwise;
      continue;
    }
    ++verdicts.beyond;
    verdicts.called_out_of_memory += fits ? 0 : 1;
  }
  return verdicts;
}

}  // namespace systole::backtest
