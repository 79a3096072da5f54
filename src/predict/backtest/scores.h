#pragma once
// What a backtest says: each row's prediction beside what was measured, errors by set and by whatever rows differ in,
// rows that were refused and why, verdicts on memory, and whether predictions choose well among layouts.

#include <functional>
#include <map>

#include "predict/backtest/error_summary.h"
#include "predict/backtest/predicted_row.h"

namespace systole::backtest {

struct ScoredRow {
  const PreparedRow* row = nullptr;
  std::string_view set, defect;           // row_sets.h
  std::optional<PredictedRow> predicted;  // where there is a job
  std::optional<double> time_error, memory_error;
};

enum class ScoredQuantity { step_time, memory };
const char* name_of(ScoredQuantity quantity);  // "step_time"

struct SetScore {
  std::string_view set;
  ScoredQuantity quantity = ScoredQuantity::step_time;
  ErrorSummary errors;  // of rows without a defect
  ErrorSummary all;     // and with those that have one
};

// Rows without a defect that are alike in one thing. Errors of the step's time.
struct GroupScore {
  std::string_view set;
  std::string by, name;  // "accelerator", "h100"
  ErrorSummary errors;
};

// Does a point run out of memory? Of those that ran, how many are said to fit; of those that crashed and lie beyond
// what their neighbours with smaller microbatches took, how many are said not to. Others crashed for another reason.
struct MemoryVerdicts {
  std::size_t ran = 0, called_fitting = 0;
  std::size_t beyond = 0, called_out_of_memory = 0;
  std::size_t crashed_otherwise = 0;
};

// Of the layouts of one model on one number of chips with one batch, is the one predicted to be the fastest fast?
struct ChoiceScore {
  std::string_view set;
  bool fitting_only = false;  // among those predicted to leave a little memory free
  std::size_t groups = 0;
  double mean_regret = 0, p95_regret = 0;  // over the median of the three fastest measured
  // And without rows whose measured time their neighbours contradict (outliers.h).
  std::size_t outliers = 0;
  double steady_mean_regret = 0, steady_p95_regret = 0;
  double mean_rank_correlation = 0, least_rank_correlation = 0;
};

struct Scores {
  std::vector<ScoredRow> rows;  // in the order given
  std::vector<SetScore> sets;   // in the order of row_sets(), those that have rows
  std::vector<GroupScore> groups;
  std::map<std::string, std::size_t> refused, defects;                // reason → rows
  std::vector<std::pair<std::string_view, MemoryVerdicts>> verdicts;  // by set
  std::vector<ChoiceScore> choices;
};

// By which profile a row is priced. What it gives outlives the call.
using ProfileOf = std::function<const StackProfile&(const PreparedRow&)>;
// That of its own stack.
const StackProfile& own_profile(const PreparedRow& row);

// `rows` outlive what is returned.
Scores score(std::span<const PreparedRow> rows, const ProfileOf& profile_of = own_profile);

// The parts of it, for tests.
MemoryVerdicts memory_verdicts(std::span<const ScoredRow* const> rows);
std::optional<ChoiceScore> choice_score(std::span<const ScoredRow* const> rows, bool fitting_only);

}  // namespace systole::backtest
