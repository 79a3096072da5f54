// A backtest as a document.

#include <algorithm>
#include <cmath>

#include "predict/backtest/report.h"

namespace systole::backtest {
namespace {

// Shares to four digits, times to six: the rest is noise.
Node rounded(double value, int digits = 4) {
  const double scale = std::pow(10, digits);
  return std::round(value * scale) / scale;
}
Node maybe(const std::optional<double>& value, int digits = 4) { return value ? rounded(*value, digits) : Node(); }

void set_errors(Node& node, const ErrorSummary& errors) {
  node.set("rows", errors.rows)
      .set("mean_error", rounded(errors.mean))
      .set("mean_abs_error", rounded(errors.mean_abs))
      .set("median_abs_error", rounded(errors.median_abs))
      .set("p90_abs_error", rounded(errors.p90_abs))
      .set("within_15_percent", rounded(errors.within_15));
}

Node errors_node(const ErrorSummary& errors) {
  Node node = Node::map();
  set_errors(node, errors);
  return node;
}

Node summary_node(const SetScore& score, const Scores& scores, const JudgedApart& apart) {
  Node node = Node::map({{"set", score.set}, {"quantity", name_of(score.quantity)}});
  set_errors(node, score.errors);
  node.set("fitted_numbers", fitted_numbers(scores, score.set, score.quantity));
  node.set("with_flagged", errors_node(score.all));
  const std::pair<const char*, const Scores*> others[] = {{"source_left_out", apart.source_left_out},
                                                          {"stack_unseen", apart.stack_unseen}};
  for (const auto& [name, other] : others) {
    if (other == nullptr) continue;
    for (const SetScore& same : other->sets)
      if (same.set == score.set && same.quantity == score.quantity) node.set(name, errors_node(same.errors));
  }
  return node;
}

// "handing on" → "handing_on".
std::string key_of(std::string words) {
  std::ranges::replace(words, ' ', '_');
  return words;
}

Node row_node(const ScoredRow& scored) {
  const PublishedRow& row = scored.row->row;
  Node node =
      Node::map({{"id", row.id}, {"source", row.source}, {"set", scored.set}, {"stack", scored.row->stack->name}});
  if (!scored.predicted) return node.set("refused", scored.row->refused);
  const PredictedRow& predicted = *scored.predicted;
  node.set("accelerator", scored.row->job->chip->name)
      .set("devices", scored.row->made->cluster.devices)
      .set("predicted_step_time_s", rounded(predicted.time.seconds, 6))
      .set("measured_step_time_s", maybe(row.step_seconds, 6))
      .set("step_time_error", maybe(scored.time_error))
      .set("predicted_mfu", rounded(predicted.mfu))
      .set("measured_mfu", maybe(row.mfu))
      .set("predicted_memory_gib", rounded(predicted.memory_gib, 3))
      .set("measured_memory_gib", maybe(row.memory_gib, 3))
      .set("memory_error", maybe(scored.memory_error));
  if (row.crashed) node.set("crashed", true);
  if (!scored.defect.empty()) node.set("flagged", scored.defect);
  Node shares = Node::map();
  for (int s = 0; s < kNumStepShares; ++s)
    shares.set(key_of(name_of(static_cast<StepShare>(s))), rounded(predicted.time[static_cast<StepShare>(s)], 6));
  node.set("shares_s", std::move(shares));
  Node taken = Node::sequence();
  for (const std::string& text : scored.row->job->taken) taken.push(text);
  return scored.row->job->taken.empty() ? node : node.set("taken", std::move(taken));
}

Node reasons_node(const std::map<std::string, std::size_t>& reasons) {
  Node list = Node::sequence();
  for (const auto& [reason, rows] : reasons) list.push(Node::map({{"reason", reason}, {"rows", rows}}));
  return list;
}

Node verdict_node(std::string_view set, const MemoryVerdicts& verdicts) {
  return Node::map({{"set", set},
                    {"ran", verdicts.ran},
                    {"called_fitting", verdicts.called_fitting},
                    {"crashed_beyond_neighbours", verdicts.beyond},
                    {"called_out_of_memory", verdicts.called_out_of_memory},
                    {"crashed_for_another_reason", verdicts.crashed_otherwise}});
}

Node choice_node(const ChoiceScore& choice) {
  return Node::map({{"set", choice.set},
                    {"among", choice.fitting_only ? "fitting" : "all"},
                    {"groups", choice.groups},
                    {"mean_regret", rounded(choice.mean_regret)},
                    {"p95_regret", rounded(choice.p95_regret)},
                    {"outliers", choice.outliers},
                    {"mean_regret_without_outliers", rounded(choice.steady_mean_regret)},
                    {"p95_regret_without_outliers", rounded(choice.steady_p95_regret)},
                    {"mean_rank_correlation", rounded(choice.mean_rank_correlation)},
                    {"least_rank_correlation", rounded(choice.least_rank_correlation)}});
}

}  // namespace

Node report_node(const Scores& scores, const JudgedApart& apart, const ReportOptions& options) {
  Node summary = Node::sequence(), groups = Node::sequence(), verdicts = Node::sequence(), choices = Node::sequence(),
       rows = Node::sequence();
  for (const SetScore& score : scores.sets)
    if (options.wants(score.set)) summary.push(summary_node(score, scores, apart));
  for (const GroupScore& group : scores.groups) {
    if (!options.wants(group.set)) continue;
    Node node = Node::map({{"set", group.set}, {"by", group.by}, {"name", group.name}});
    set_errors(node, group.errors);
    groups.push(std::move(node));
  }
  for (const auto& [set, of_set] : scores.verdicts)
    if (options.wants(set)) verdicts.push(verdict_node(set, of_set));
  for (const ChoiceScore& choice : scores.choices)
    if (options.wants(choice.set)) choices.push(choice_node(choice));
  for (const ScoredRow& row : scores.rows)
    if (options.wants(row.set)) rows.push(row_node(row));
  return Node::map({{"summary", std::move(summary)},
                    {"groups", std::move(groups)},
                    {"choices", std::move(choices)},
                    {"memory_verdicts", std::move(verdicts)},
                    {"flagged", reasons_node(scores.defects)},
                    {"refused", reasons_node(scores.refused)},
                    {"rows", std::move(rows)}});
}

}  // namespace systole::backtest
