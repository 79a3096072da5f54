#include "predict/backtest/row_sets.h"

#include <algorithm>
#include <array>

#include "predict/backtest/row_words.h"

namespace systole::backtest {
namespace {

struct SweepSet {
  std::string_view words, set;  // of the source
};
constexpr SweepSet kSweeps[] = {
    {"vTrain single-node", "vtrain-single"}, {"vTrain multi-node", "vtrain-multi"}, {"ultrascale sweep", "sweep"}};

struct DefectWords {
  std::string PublishedRow::*column;
  std::string_view words, defect;
};
constexpr DefectWords kDefects[] = {
    {&PublishedRow::quality_flag, " != ", "its layout or batch does not multiply"},
    {&PublishedRow::quality_flag, "approx", "approximate, says its source"},
    {&PublishedRow::quality_flag, "network noise", "network noise of 40%, says its source"},
    {&PublishedRow::quality_flag, "PCIe", "an outlier, says its source"},
    {&PublishedRow::quality_flag, "inconsistent", "unlike its neighbours, says its source"},
    {&PublishedRow::quality_flag, "fewer microbatches than stages", "fewer microbatches than stages"},
    {&PublishedRow::notes, "VP as NA", "its number of chunks is doubtful"},
};

// Points of nanotron's sweep, read at the fourth iteration, that stall for half a second per microbatch and more,
// whatever the layout (docs/results/2026-11-22-step-time-study.md, section 5).
std::string_view stall_of(const PublishedRow& row) {
  if (!row.framework.starts_with("nanotron")) return {};
  if (row.chips.value_or(0) >= 512) return "stalls on 512 GPUs at its fourth iteration";
  const bool unsharded = row.zero_stage.value_or(1) == 0 && row.dp.value_or(1) > 1;
  return unsharded && row.pp.value_or(1) > 1 ? "stalls with a pipeline and an optimizer that is not sharded" : "";
}

// True if the row ran, but cannot have run as stated: without recomputation it would need far more memory than there
// is. Types below 16 bits are excluded, because a Program does not know what is stored in them.
bool cannot_have_fitted(const PreparedRow& row) {
  return row.made != nullptr && row.row.step_seconds && row.row.recompute == "none" &&
         row.job->kernels.products == ProductType::bf16 &&
         predicted_gib(row, *row.stack) > 1.25 * (row.made->cluster.chip.capacity / kGiB);
}

}  // namespace

std::span<const std::string_view> row_sets() {
  static constexpr std::array<std::string_view, 7> kSets{"dense-bf16",    "unseen-stack", "fp8",  "moe",
                                                         "vtrain-single", "vtrain-multi", "sweep"};
  return kSets;
}

std::string_view set_of(const PreparedRow& row) {
  for (const SweepSet& sweep : kSweeps)
    if (says(row.row.source, sweep.words)) return sweep.set;
  if (row.row.experts.value_or(0) > 1) return "moe";
  if (row.job && row.job->kernels.products != ProductType::bf16) return "fp8";
  return row.stack->name == "default" ? "unseen-stack" : "dense-bf16";
}

bool is_sweep(std::string_view set) {
  return std::ranges::any_of(kSweeps, [&](const SweepSet& sweep) { return sweep.set == set; });
}

std::string_view defect_of(const PreparedRow& row) {
  for (const DefectWords& defect : kDefects)
    if (says(row.row.*defect.column, defect.words)) return defect.defect;
  if (const std::string_view stall = stall_of(row.row); !stall.empty()) return stall;
  return cannot_have_fitted(row) ? "cannot have fitted as it is told" : "";
}

bool before_a_repair(const PublishedRow& row) {
  const std::optional<double> day = number_after(row.notes, "date 02-");
  return row.notes.starts_with("date 02-") && day && *day < 25;
}

}  // namespace systole::backtest
