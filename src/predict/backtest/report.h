#pragma once
// A backtest for people, as tables, and for programs, as a document.

#include "ground/base/document.h"
#include "predict/backtest/scores.h"

namespace systole::backtest {

struct ReportTable {
  std::string title, note;                     // note: what to know of it; may be empty
  std::vector<std::string> headers;            // one that ends in '>' is of a column that is aligned to the right
  std::vector<std::vector<std::string>> rows;  // as wide as the headers
};

// Scores by profiles that were fitted with a row's own source left out, and as if its stack had never been seen.
struct JudgedApart {
  const Scores* source_left_out = nullptr;
  const Scores* stack_unseen = nullptr;
};

struct ReportOptions {
  std::size_t worst = 10;  // rows
  std::string set;         // of this one alone, in all that its rows differ in; empty: all
  bool wants(std::string_view of) const { return set.empty() || set == of; }
};

std::vector<ReportTable> report_tables(const Scores& scores, const JudgedApart& apart, const ReportOptions& options);

// {"summary": [...], "groups": [...], "refused": [...], "flagged": [...], "memory_verdicts": [...], "choices": [...],
// "rows": [...]}
Node report_node(const Scores& scores, const JudgedApart& apart, const ReportOptions& options);

// How many numbers were fitted that the predictions of a set rest on: those of its stacks' profiles that the quantity
// depends on, and facts of its chips that were found on published rows.
std::size_t fitted_numbers(const Scores& scores, std::string_view set, ScoredQuantity quantity);

}  // namespace systole::backtest
