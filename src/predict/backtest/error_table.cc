#include "predict/backtest/error_table.h"

#include <array>
#include <cmath>

#include "predict/backtest/row_sets.h"

namespace systole::backtest {
namespace {

using Kind = std::array<std::string, 4>;  // stack, work, accelerator, of

struct KindErrors {
  std::vector<double> left_out, fitted;
};

double rounded(double value) { return std::round(value * 1e4) / 1e4; }

const std::optional<double>& error_of(const ScoredRow& row, ScoredQuantity quantity) {
  return quantity == ScoredQuantity::memory ? row.memory_error : row.time_error;
}

std::string_view work_of(const PreparedRow& row) {
  if (row.row.experts.value_or(0) > 1) return "moe";
  return row.job->kernels.products != ProductType::bf16 ? "fp8" : "dense";
}

}  // namespace

std::vector<KnownError> known_errors(const Scores& fitted, const JudgedApart& apart) {
  CHECK(apart.source_left_out != nullptr && apart.stack_unseen != nullptr, "errors without those left out");
  std::map<Kind, KindErrors> kinds, of_sweeps;
  for (std::size_t i = 0; i < fitted.rows.size(); ++i) {
    const ScoredRow& row = fitted.rows[i];
    for (const ScoredQuantity quantity : {ScoredQuantity::step_time, ScoredQuantity::memory}) {
      if (!error_of(row, quantity) || !row.defect.empty()) continue;
      const std::string work(work_of(*row.row));
      for (const std::string& on : {row.row->job->chip->name, std::string(kAnyAccelerator)}) {
        KindErrors& seen = (is_sweep(row.set) ? of_sweeps : kinds)[{row.row->stack->name, work, on, name_of(quantity)}];
        seen.left_out.push_back(*error_of(apart.source_left_out->rows[i], quantity));
        seen.fitted.push_back(*error_of(row, quantity));
        if (is_sweep(row.set)) continue;
        KindErrors& unseen = kinds[{std::string(kUnseenStack), work, on, name_of(quantity)}];
        unseen.left_out.push_back(*error_of(apart.stack_unseen->rows[i], quantity));
      }
    }
  }
  kinds.merge(of_sweeps);  // existing kinds stay
  std::vector<KnownError> errors;
  for (auto& [kind, of_kind] : kinds) {
    const ErrorSummary summary = summary_of(std::move(of_kind.left_out));
    KnownError one{kind[0],
                   kind[1],
                   kind[2],
                   kind[3],
                   static_cast<std::int64_t>(summary.rows),
                   rounded(summary.mean_abs),
                   rounded(summary.p90_abs),
                   {}};
    if (!of_kind.fitted.empty()) one.fitted_mean = rounded(summary_of(std::move(of_kind.fitted)).mean_abs);
    errors.push_back(std::move(one));
  }
  return errors;
}

}  // namespace systole::backtest
