#pragma once
// A backtest for people, as tables, and for programs, as a document.

#include "ground/base/document.h"
#include "predict/backtest/scores.h"

namespace systole::backtest {

struct ReportTable {
  std::string title, note;                     // note: a remark for readers; may be empty
  std::vector<std::string> headers;            // a final '>' aligns the column to the right
  std::vector<std::vector<std::string>> rows;  // as wide as the headers
};

// Held-out scores: by profiles fitted without a row's source, and without its stack. Null: not computed.
struct JudgedApart {
  const Scores* source_left_out = nullptr;
  const Scores* stack_unseen = nullptr;
};

struct ReportOptions {
  std::size_t worst = 10;  // rows
  std::string set;         // only this set, with all groups of its rows; empty: all sets
  bool wants(std::string_view of) const { return set.empty() || set == of; }
};

std::vector<ReportTable> report_tables(const Scores& scores, const JudgedApart& apart, const ReportOptions& options);

// {"summary": [...], "groups": [...], "refused": [...], "flagged": [...], "memory_verdicts": [...], "choices": [...],
// "rows": [...]}
Node report_node(const Scores& scores, const JudgedApart& apart, const ReportOptions& options);

// The number of fitted parameters behind the predictions of a set: the numbers of its stacks' profiles that the
// quantity depends on, and facts of its chips that were fitted to published rows.
std::size_t fitted_numbers(const Scores& scores, std::string_view set, ScoredQuantity quantity);

}  // namespace systole::backtest
