#include "predict/backtest/scores.h"

#include <algorithm>

#include "predict/backtest/row_sets.h"

namespace systole::backtest {
namespace {

ScoredRow scored(const PreparedRow& row, const ProfileOf& profile_of) {
  ScoredRow result;
  result.row = &row;
  result.set = set_of(row);
  result.defect = defect_of(row);
  if (row.made == nullptr) return result;
  result.predicted = predict(row, profile_of(row));
  if (row.row.step_seconds) result.time_error = result.predicted->time.seconds / *row.row.step_seconds - 1;
  if (row.row.memory_gib) result.memory_error = result.predicted->memory_gib / *row.row.memory_gib - 1;
  return result;
}

std::string size_class(std::int64_t size, std::span<const std::int64_t> ends) {
  std::int64_t begin = 1;
  for (const std::int64_t end : ends) {
    if (size <= end) return fmt::format("{}-{}", begin, end);
    begin = end + 1;
  }
  return fmt::format("{}-", begin);
}

std::string axes_of(const RowJob& job) {
  std::string axes;
  for (const auto& [axis, size] : job.workload.mesh) axes += (axes.empty() ? "" : " ") + axis;
  return axes.empty() ? "one device" : axes;
}

// The property of a row by which it is grouped. REQUIRES: the row has a job.
using Naming = std::string (*)(const PreparedRow&);
constexpr std::pair<const char*, Naming> kGroupings[] = {
    {"stack", [](const PreparedRow& row) { return row.stack->name; }},
    {"source", [](const PreparedRow& row) { return row.row.source; }},
    {"accelerator", [](const PreparedRow& row) { return row.job->chip->name; }},
    {"chips",
     [](const PreparedRow& row) {
       constexpr std::int64_t kEnds[] = {8, 64, 512};
       return size_class(row.row.chips.value_or(1), kEnds);
     }},
    {"layers times width",
     [](const PreparedRow& row) {
       constexpr std::int64_t kEnds[] = {65536, 262144, 1048576};
       return size_class(row.job->workload.model.layers() * row.job->workload.model.width(), kEnds);
     }},
    {"axes", [](const PreparedRow& row) { return axes_of(*row.job); }},
    {"dtype", [](const PreparedRow& row) { return row.row.dtype.empty() ? "not told" : row.row.dtype; }},
};

std::vector<GroupScore> group_scores(std::span<const ScoredRow> rows) {
  std::vector<GroupScore> scores;
  for (const std::string_view set : row_sets()) {
    for (const auto& [by, naming] : kGroupings) {
      std::map<std::string, std::vector<double>> errors;
      for (const ScoredRow& row : rows)
        if (row.set == set && row.defect.empty() && row.time_error) errors[naming(*row.row)].push_back(*row.time_error);
      for (auto& [name, of_name] : errors) scores.push_back({set, by, name, summary_of(std::move(of_name))});
    }
  }
  return scores;
}

void add_set_scores(std::string_view set, std::span<const ScoredRow* const> rows, Scores& scores) {
  for (const ScoredQuantity quantity : {ScoredQuantity::step_time, ScoredQuantity::memory}) {
    std::vector<double> sound, all;
    for (const ScoredRow* row : rows) {
      const std::optional<double>& error = quantity == ScoredQuantity::memory ? row->memory_error : row->time_error;
      if (!error) continue;
      all.push_back(*error);
      if (row->defect.empty()) sound.push_back(*error);
    }
    if (!all.empty()) scores.sets.push_back({set, quantity, summary_of(std::move(sound)), summary_of(std::move(all))});
  }
}

}  // namespace

const char* name_of(ScoredQuantity quantity) { return quantity == ScoredQuantity::step_time ? "step_time" : "memory"; }

const StackProfile& own_profile(const PreparedRow& row) { return *row.stack; }

Scores score(std::span<const PreparedRow> rows, const ProfileOf& profile_of) {
  Scores scores;
  for (const PreparedRow& row : rows) scores.rows.push_back(scored(row, profile_of));
  for (const ScoredRow& row : scores.rows) {
    if (!row.row->refused.empty()) ++scores.refused[row.row->refused];
    if (row.predicted && row.row->row.step_seconds && !row.defect.empty()) ++scores.defects[std::string(row.defect)];
  }
  for (const std::string_view set : row_sets()) {
    std::vector<const ScoredRow*> of_set;
    for (const ScoredRow& row : scores.rows)
      if (row.set == set) of_set.push_back(&row);
    add_set_scores(set, of_set, scores);
    const MemoryVerdicts verdicts = memory_verdicts(of_set);
    if (verdicts.beyond + verdicts.crashed_otherwise > 0) scores.verdicts.emplace_back(set, verdicts);
    for (const bool fitting_only : {false, true}) {
      const std::optional<ChoiceScore> choice = choice_score(of_set, fitting_only);
      if (choice) scores.choices.push_back(*choice);
    }
  }
  scores.groups = group_scores(scores.rows);
  return scores;
}

}  // namespace systole::backtest
