// `systole backtest ROWS.csv`: compares our predictions with published measurements.

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "ground/base/counted.h"
#include "ground/base/nearest.h"
#include "ground/base/text_file.h"
#include "operate/cli/command.h"
#include "operate/run/machine.h"
#include "predict/backtest/accuracy_page.h"
#include "predict/backtest/error_table.h"
#include "predict/backtest/fit.h"
#include "predict/backtest/judged.h"
#include "predict/backtest/report.h"
#include "predict/backtest/row_sets.h"
#include "predict/backtest/scatter.h"

namespace systole::cli {
namespace {

using namespace backtest;

struct BacktestOptions {
  std::vector<std::string> files;
  std::string set, stacks, svg, page, save, errors;
  std::int64_t worst = 10, threads = 2;
  bool fit = false;
};

Status check_set(const std::string& set) {
  const std::vector<std::string> known(row_sets().begin(), row_sets().end());
  if (set.empty() || std::ranges::find(known, set) != known.end()) return {};
  return error(ErrorKind::invalid, "--set: there is no set '{}'", set).hinted(nearest_hint(set, known));
}

Status check_rows_of(const std::string& set, const Scores& scores) {
  std::set<std::string_view> found;
  for (const ScoredRow& row : scores.rows) found.insert(row.set);
  if (set.empty() || found.contains(set)) return {};
  return error(ErrorKind::not_found, "--set: none of the {} is of the set '{}'", counted(scores.rows.size(), "row"),
               set)
      .hinted(fmt::format("they are of: {}", fmt::join(found, ", ")));
}

std::string text_of(const std::vector<ReportTable>& tables, Printer& out) {
  std::string text;
  for (const ReportTable& t : tables) {
    text += (text.empty() ? "" : "\n") + out.ink(Ink::bold, t.title) + "\n";
    text += table(t.headers, t.rows, out.width());
  }
  return text;
}

ExitCode backtest_rows(const BacktestOptions& options, Context& context) {
  check_set(options.set).value();
  for (const std::string& path : {options.svg, options.page, options.save})
    if (!path.empty()) check_writable(path).value();
  const Catalog catalog = read_catalog().value();
  const std::vector<StackProfile> given =
      options.stacks.empty() ? builtin_stacks()
                             : read_stacks(read_text_file(options.stacks).value(), options.stacks).value();
  std::vector<PublishedRow> published = read_published_files(options.files).value();
  PrepareOptions prepare_options;
  prepare_options.threads = static_cast<int>(options.threads);
  prepare_options.progress = [&](std::size_t done, std::size_t all) {
    context.out.progress(fmt::format("{} of {}", done, counted(all, "layout")));
  };
  const std::vector<PreparedRow> rows = prepare(std::move(published), given, catalog, prepare_options);
  context.out.end_progress();
  const std::vector<StackProfile> stacks = options.fit ? fit_stacks(rows, given) : given;
  const Judged judged = judge(rows, stacks, options.fit || !options.page.empty() || !options.errors.empty());
  check_rows_of(options.set, judged.scores).value();
  const ReportOptions report{static_cast<std::size_t>(options.worst), options.set};
  if (!options.svg.empty()) write_text_file(options.svg, scatter_svg(judged.scores, options.set)).value();
  if (!options.page.empty()) {
    const AccuracyPage page{options.files, catalog.date(), report_tables(judged.scores, judged.apart(), report),
                            stacks};
    write_text_file(options.page, to_markdown(page)).value();
  }
  if (!options.save.empty()) write_text_file(options.save, to_yaml(stacks)).value();
  if (!options.errors.empty())
    write_text_file(options.errors, to_csv(known_errors(judged.scores, judged.apart()))).value();
  Node document = report_node(judged.scores, judged.apart(), report);
  document.set("catalog_date", catalog.date());
  if (options.fit) {
    context.out.data(to_yaml(stacks));
    document.set("stacks", to_yaml(stacks));
  }
  context.out.prose(text_of(report_tables(judged.scores, judged.apart(), report), context.out));
  context.out.json(document);
  if (std::ranges::any_of(judged.scores.rows, [](const ScoredRow& row) { return row.predicted.has_value(); }))
    return ExitCode::done;
  context.out.warning("no row was predicted: all were refused");
  return ExitCode::no;
}

}  // namespace

void add_backtest(Subcommand app, Context& context) {
  auto options = std::make_shared<BacktestOptions>();
  Subcommand command =
      add_command(app, "backtest", "predictions beside published measurements", options, context, backtest_rows);
  command.add_option("rows", options->files, "tables of measurements, as CSV: data/validation/training.csv").required();
  command.add_option("--set", options->set, fmt::format("rows of this set alone: {}", fmt::join(row_sets(), ", ")));
  command.add_option("--worst", options->worst, "so many of the rows that are predicted worst (default: 10)")
      .check(at_least(0));
  command.add_option("--svg", options->svg, "also draw predicted against measured step times, into this file");
  command.add_flag("--fit", options->fit, "fit the numbers of stacks to the rows, print and judge them");
  command.add_option("--stacks", options->stacks, "profiles of stacks, in place of those built in");
  command.add_option("--save-stacks", options->save, "write the profiles into this file");
  command.add_option("--save-errors", options->errors,
                     "write the errors by kind of prediction, which plans tell, into this file");
  command.add_option("--page", options->page, "write the page docs/accuracy.md into this file");
  command.add_option("--threads", options->threads, "that make Programs (default: 2)").check(at_least(1));
}

}  // namespace systole::cli
