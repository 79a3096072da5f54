// Scores how well predictions choose among measured layouts.

#include <algorithm>
#include <numeric>
#include <tuple>

#include "predict/backtest/outliers.h"
#include "predict/backtest/scores.h"

namespace systole::backtest {
namespace {

constexpr std::size_t kLeastLayouts = 6;     // per group
constexpr std::size_t kFastestMeasured = 3;  // their median is the reference, because a single point may be luck

bool leaves_room(const ScoredRow& row) {
  return row.predicted->memory_gib <= kUsableMemory * (row.row->made->cluster.chip.capacity / kGiB);
}

struct GroupChoice {
  double regret = 0, correlation = 0;
};
std::optional<GroupChoice> choice_of(const std::vector<const ScoredRow*>& group, bool fitting_only) {
  if (group.size() < kLeastLayouts) return std::nullopt;
  std::vector<double> measured, predicted;
  for (const ScoredRow* row : group) {
    measured.push_back(*row->row->row.step_seconds);
    predicted.push_back(row->predicted->time.seconds);
  }
  std::optional<std::size_t> chosen;
  for (std::size_t i = 0; i < group.size(); ++i) {
    if (fitting_only && !leaves_room(*group[i])) continue;
    if (!chosen || predicted[i] < predicted[*chosen]) chosen = i;
  }
  if (!chosen) return std::nullopt;
  std::vector<double> fastest = measured;
  std::ranges::sort(fastest);
  fastest.resize(kFastestMeasured);
  return GroupChoice{std::max(0.0, measured[*chosen] / quantile(fastest, 0.5) - 1),
                     rank_correlation(predicted, measured)};
}

std::vector<const ScoredRow*> without_outliers(const std::vector<const ScoredRow*>& group) {
  std::vector<const PublishedRow*> measured;
  for (const ScoredRow* row : group) measured.push_back(&row->row->row);
  std::vector<const ScoredRow*> steady = group;
  std::erase_if(steady, [&](const ScoredRow* row) { return is_outlier(row->row->row, measured); });
  return steady;
}

struct Regrets {
  std::vector<double> all;
  double mean() const {
    return all.empty() ? 0 : std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
  }
  double p95() {
    std::ranges::sort(all);
    return all.empty() ? 0 : quantile(all, 0.95);
  }
};

}  // namespace

std::optional<ChoiceScore> choice_score(std::span<const ScoredRow* const> rows, bool fitting_only) {
  using Key = std::tuple<std::string, std::string, std::string, std::int64_t, std::int64_t, std::int64_t>;
  std::map<Key, std::vector<const ScoredRow*>> groups;
  for (const ScoredRow* row : rows) {
    const PublishedRow& of = row->row->row;
    if (row->predicted && of.step_seconds && row->defect.empty())
      groups[{of.source, of.model, of.accelerator, *of.chips, *of.batch, *of.sequence_length}].push_back(row);
  }
  ChoiceScore score;
  score.set = rows.empty() ? "" : rows.front()->set;
  score.fitting_only = fitting_only;
  score.least_rank_correlation = 1;
  Regrets regrets, steady_regrets;
  for (const auto& [key, group] : groups) {
    const std::optional<GroupChoice> choice = choice_of(group, fitting_only);
    if (!choice) continue;
    regrets.all.push_back(choice->regret);
    const std::vector<const ScoredRow*> steady = without_outliers(group);
    score.outliers += group.size() - steady.size();
    if (const auto of_steady = choice_of(steady, fitting_only)) steady_regrets.all.push_back(of_steady->regret);
    score.mean_rank_correlation += choice->correlation;
    score.least_rank_correlation = std::min(score.least_rank_correlation, choice->correlation);
  }
  if (regrets.all.empty()) return std::nullopt;
  score.groups = regrets.all.size();
  score.mean_rank_correlation /= static_cast<double>(score.groups);
  score.mean_regret = regrets.mean();
  score.p95_regret = regrets.p95();
  score.steady_mean_regret = steady_regrets.mean();
  score.steady_p95_regret = steady_regrets.p95();
  return score;
}

}  // namespace systole::backtest
