#pragma once
// The scores of a backtest: each row's prediction beside its measurement, errors by set and by property of the rows,
// refused rows with reasons, verdicts on memory, and how well predictions choose among layouts.

#include <functional>
#include <map>

#include "predict/backtest/error_summary.h"
#include "predict/backtest/predicted_row.h"

namespace systole::backtest {

struct ScoredRow {
  const PreparedRow* row = nullptr;
  std::string_view set, defect;           // row_sets.h
  std::optional<PredictedRow> predicted;  // empty without a job
  std::optional<double> time_error, memory_error;
};

enum class ScoredQuantity { step_time, memory };
const char* name_of(ScoredQuantity quantity);  // "step_time"

struct SetScore {
  std::string_view set;
  ScoredQuantity quantity = ScoredQuantity::step_time;
  ErrorSummary errors;  // rows without a defect
  ErrorSummary all;     // and rows with one
};

// Errors of step time of the rows without a defect that share one property.
struct GroupScore {
  std::string_view set;
  std::string by, name;  // "accelerator", "h100"
  ErrorSummary errors;
};

// Predictions of out of memory. `ran`: points that ran, of which `called_fitting` are predicted to fit. `beyond`:
// crashed points that would exceed the memory, extrapolated from neighbours with smaller microbatches, of which
// `called_out_of_memory` are predicted not to fit. All others crashed for another reason.
struct MemoryVerdicts {
  std::size_t ran = 0, called_fitting = 0;
  std::size_t beyond = 0, called_out_of_memory = 0;
  std::size_t crashed_otherwise = 0;
};

// How fast is the layout that is predicted to be fastest? A group has the layouts of one source, model, accelerator,
// number of chips, batch and sequence length.
struct ChoiceScore {
  std::string_view set;
  bool fitting_only = false;  // choose only among layouts predicted to fit, with some memory free
  std::size_t groups = 0;
  double mean_regret = 0, p95_regret = 0;  // relative to the median of the three fastest measured
  // The same without outliers (outliers.h).
  std::size_t outliers = 0;
  double steady_mean_regret = 0, steady_p95_regret = 0;
  double mean_rank_correlation = 0, least_rank_correlation = 0;
};

struct Scores {
  std::vector<ScoredRow> rows;  // in the order given
  std::vector<SetScore> sets;   // in the order of row_sets(); only sets with rows
  std::vector<GroupScore> groups;
  std::map<std::string, std::size_t> refused, defects;                // reason → rows
  std::vector<std::pair<std::string_view, MemoryVerdicts>> verdicts;  // by set
  std::vector<ChoiceScore> choices;
};

// Gives the profile that prices a row; the profile outlives the call.
using ProfileOf = std::function<const StackProfile&(const PreparedRow&)>;
// The profile of the row's own stack.
const StackProfile& own_profile(const PreparedRow& row);

// `rows` must outlive the result.
Scores score(std::span<const PreparedRow> rows, const ProfileOf& profile_of = own_profile);

// Parts of score(), for tests.
MemoryVerdicts memory_verdicts(std::span<const ScoredRow* const> rows);
std::optional<ChoiceScore> choice_score(std::span<const ScoredRow* const> rows, bool fitting_only);

}  // namespace systole::backtest
