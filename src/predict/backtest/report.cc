#include "predict/backtest/report.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "predict/backtest/row_words.h"

namespace systole::backtest {
namespace {

using Cells = std::vector<std::string>;

std::string percent(double share) { return fmt::format("{:.1f}", 100 * share); }
std::string whole_percent(double share) { return fmt::format("{:.0f}", 100 * share); }
std::string count(std::size_t n) { return with_commas(static_cast<std::int64_t>(n)); }

const SetScore* find(const Scores* scores, const SetScore& like) {
  if (scores == nullptr) return nullptr;
  for (const SetScore& score : scores->sets)
    if (score.set == like.set && score.quantity == like.quantity) return &score;
  return nullptr;
}

ReportTable set_table(const Scores& scores, const JudgedApart& apart, const ReportOptions& options) {
  ReportTable table;
  table.title = "errors by set of rows";
  table.note =
      "|predicted / measured - 1| in percent. fitted: how many fitted numbers the predictions rest on. flagged: rows "
      "with a defect, judged apart; all: mean with them.";
  table.headers = {"set", "of", "rows>", "mean>", "median>", "p90>", "within 15%>", "bias>", "fitted>"};
  if (apart.source_left_out != nullptr)
    for (const char* header : {"source left out: mean>", "p90>"}) table.headers.emplace_back(header);
  if (apart.stack_unseen != nullptr)
    for (const char* header : {"stack unseen: mean>", "p90>"}) table.headers.emplace_back(header);
  for (const char* header : {"flagged>", "all>"}) table.headers.emplace_back(header);
  for (const SetScore& score : scores.sets) {
    if (!options.wants(score.set)) continue;
    const ErrorSummary& e = score.errors;
    Cells cells{std::string(score.set),
                score.quantity == ScoredQuantity::memory ? "memory" : "step time",
                count(e.rows),
                percent(e.mean_abs),
                percent(e.median_abs),
                percent(e.p90_abs),
                whole_percent(e.within_15),
                fmt::format("{:+.1f}", 100 * e.mean),
                count(fitted_numbers(scores, score.set, score.quantity))};
    for (const Scores* other : {apart.source_left_out, apart.stack_unseen}) {
      if (other == nullptr) continue;
      const SetScore* same = find(other, score);
      cells.push_back(same == nullptr ? "-" : percent(same->errors.mean_abs));
      cells.push_back(same == nullptr ? "-" : percent(same->errors.p90_abs));
    }
    cells.push_back(count(score.all.rows - e.rows));
    cells.push_back(percent(score.all.mean_abs));
    table.rows.push_back(std::move(cells));
  }
  return table;
}

// All groups of one set; of all sets only the most informative groups.
ReportTable group_table(const Scores& scores, const ReportOptions& options) {
  ReportTable table;
  table.title = "errors of step times by what rows differ in";
  table.headers = {"set", "by", "rows of", "rows>", "mean>", "median>", "p90>", "bias>"};
  for (const GroupScore& group : scores.groups) {
    if (!options.wants(group.set)) continue;
    if (options.set.empty() && group.by != "stack" && group.by != "source" && group.by != "accelerator") continue;
    const ErrorSummary& e = group.errors;
    table.rows.push_back({std::string(group.set), group.by, group.name, count(e.rows), percent(e.mean_abs),
                          percent(e.median_abs), percent(e.p90_abs), fmt::format("{:+.1f}", 100 * e.mean)});
  }
  return table;
}

std::string seconds_text(double seconds) { return fmt::format("{:.4g}", seconds); }

ReportTable worst_table(const Scores& scores, const ReportOptions& options) {
  ReportTable table;
  table.title = "rows predicted worst";
  table.headers = {"row", "set", "stack", "measured s>", "predicted s>", "error %>", "flagged"};
  std::vector<const ScoredRow*> rows;
  for (const ScoredRow& row : scores.rows)
    if (row.time_error && row.defect.empty() && options.wants(row.set)) rows.push_back(&row);
  const auto far_off = [](const ScoredRow* row) { return -std::abs(std::log1p(*row->time_error)); };
  std::ranges::stable_sort(rows, {}, far_off);
  rows.resize(std::min(rows.size(), options.worst));
  for (const ScoredRow* row : rows)
    table.rows.push_back({row->row->row.id, std::string(row->set), row->row->stack->name,
                          seconds_text(*row->row->row.step_seconds), seconds_text(row->predicted->time.seconds),
                          fmt::format("{:+.1f}", 100 * *row->time_error), std::string(row->defect)});
  return table;
}

ReportTable reasons_table(std::string title, std::string note, const std::map<std::string, std::size_t>& reasons) {
  ReportTable table{std::move(title), std::move(note), {"rows>", "because"}, {}};
  std::vector<std::pair<std::string, std::size_t>> most(reasons.begin(), reasons.end());
  std::ranges::stable_sort(most, std::greater(), &std::pair<std::string, std::size_t>::second);
  for (const auto& [reason, rows] : most) table.rows.push_back({count(rows), reason});
  return table;
}

// Adds a row for each requested set to `table`.
template <typename Scored, typename CellsOf>
ReportTable table_by_set(ReportTable table, const Scored& scored, const ReportOptions& options, CellsOf cells_of) {
  for (const auto& of_set : scored) {
    Cells cells = cells_of(of_set);
    if (options.wants(cells.front())) table.rows.push_back(std::move(cells));
  }
  return table;
}

ReportTable verdict_table(const Scores& scores, const ReportOptions& options) {
  ReportTable head{"does it fit",
                   "Points that ran, said to fit; points that crashed where their neighbours of smaller microbatches "
                   "let expect more "
                   "than the device has, said not to. The rest crashed for another reason, or no neighbour tells.",
                   {"set", "ran>", "said to fit>", "crashed beyond>", "said not to fit>", "crashed otherwise>"},
                   {}};
  return table_by_set(std::move(head), scores.verdicts, options, [](const auto& verdicts) {
    const auto& [set, v] = verdicts;
    return Cells{std::string(set),
                 count(v.ran),
                 count(v.called_fitting),
                 count(v.beyond),
                 count(v.called_out_of_memory),
                 count(v.crashed_otherwise)};
  });
}

ReportTable choice_table(const Scores& scores, const ReportOptions& options) {
  ReportTable head{
      "choosing a layout",
      "Of six layouts or more of one model on one number of chips with one batch: by how many percent the one "
      "predicted "
      "to be the fastest is slower than the median of the three fastest measured, of all rows and without outliers, "
      "which "
      "took half as long again as all their neighbours in microbatch and sharded optimizer; and the correlation of "
      "ranks.",
      {"set", "among", "groups>", "regret>", "p95>", "outliers>", "regret without>", "p95 without>",
       "rank correlation>", "least>"},
      {}};
  return table_by_set(std::move(head), scores.choices, options, [](const ChoiceScore& c) {
    return Cells{std::string(c.set),
                 c.fitting_only ? "those said to fit" : "all",
                 count(c.groups),
                 percent(c.mean_regret),
                 percent(c.p95_regret),
                 count(c.outliers),
                 percent(c.steady_mean_regret),
                 percent(c.steady_p95_regret),
                 fmt::format("{:.3f}", c.mean_rank_correlation),
                 fmt::format("{:.2f}", c.least_rank_correlation)};
  });
}

}  // namespace

std::size_t fitted_numbers(const Scores& scores, std::string_view set, ScoredQuantity quantity) {
  const auto of_memory = [](const StackNumber& number) {
    return number.member == &StackProfile::context || number.member == &StackProfile::fragments;
  };
  const auto numbers = static_cast<std::size_t>(std::ranges::count_if(stack_numbers(), [&](const StackNumber& number) {
    return of_memory(number) == (quantity == ScoredQuantity::memory);
  }));
  std::set<std::string> stacks;
  std::set<const CatalogEntry*> chips;
  for (const ScoredRow& row : scores.rows) {
    const bool measured =
        quantity == ScoredQuantity::memory ? row.memory_error.has_value() : row.time_error.has_value();
    if (row.set != set || !measured) continue;
    if (row.row->stack->name != "default") stacks.insert(row.row->stack->name);
    chips.insert(row.row->job->chip);
  }
  std::size_t found = stacks.size() * numbers;
  for (const CatalogEntry* chip : chips)
    for (const auto& [key, fact] : chip->facts)
      if (quantity == ScoredQuantity::step_time && says(fact.source, "data/validation")) ++found;
  return found;
}

std::vector<ReportTable> report_tables(const Scores& scores, const JudgedApart& apart, const ReportOptions& options) {
  std::vector<ReportTable> tables;
  tables.push_back(set_table(scores, apart, options));
  tables.push_back(group_table(scores, options));
  tables.push_back(worst_table(scores, options));
  tables.push_back(choice_table(scores, options));
  tables.push_back(verdict_table(scores, options));
  if (options.set.empty()) {
    tables.push_back(reasons_table("flagged rows", "What their source says, or their own columns show, to be wrong.",
                                   scores.defects));
    tables.push_back(reasons_table("refused rows", "Rows of which no job is made.", scores.refused));
  }
  std::erase_if(tables, [](const ReportTable& table) { return table.rows.empty(); });
  return tables;
}

}  // namespace systole::backtest
