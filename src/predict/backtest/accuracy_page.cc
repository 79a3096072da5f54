#include "predict/backtest/accuracy_page.h"

#include <fmt/ranges.h>

namespace systole::backtest {
namespace {

std::string row_text(const std::vector<std::string>& cells) {
  std::string text = "|";
  for (const std::string& cell : cells) text += " " + cell + " |";
  return text + "\n";
}

std::string table_text(const ReportTable& table) {
  std::string text = "\n## " + table.title + "\n\n";
  if (!table.note.empty()) text += table.note + "\n\n";
  std::vector<std::string> headers;
  std::string rule = "|";
  for (const std::string& header : table.headers) {
    const bool right = header.ends_with('>');
    headers.push_back(header.substr(0, header.size() - (right ? 1 : 0)));
    rule += right ? "---:|" : "---|";
  }
  text += row_text(headers) + rule + "\n";
  for (const std::vector<std::string>& cells : table.rows) text += row_text(cells);
  return text;
}

ReportTable stack_table(const std::vector<StackProfile>& stacks) {
  ReportTable table;
  table.title = "the fitted numbers";
  table.note =
      "Of data/perf/stacks.yaml. `default` is the median of the others and serves stacks that nobody has fitted.";
  table.headers = {"number"};
  for (const StackProfile& stack : stacks) table.headers.push_back(stack.name + ">");
  for (const char* header : {"bounds>", "meaning"}) table.headers.emplace_back(header);
  for (const StackNumber& number : stack_numbers()) {
    std::vector<std::string> cells{number.name};
    for (const StackProfile& stack : stacks) cells.push_back(fmt::format("{:.4g}", stack.*number.member));
    cells.push_back(fmt::format("{:g} to {:g}", number.least, number.most));
    cells.emplace_back(number.meaning);
    table.rows.push_back(std::move(cells));
  }
  return table;
}

}  // namespace

std::string to_markdown(const AccuracyPage& page) {
  std::string text = fmt::format(
      "# How far predictions are off\n\n"
      "Printed by\n\n    systole backtest {} --page docs/accuracy.md\n\n"
      "with the catalog of {}. The rows are other people's measurements\n"
      "([data/validation](../data/validation/README.md)); nothing was measured for this page. Step times are "
      "predicted\n"
      "from the Program that Systole would run in the same layout, priced by the profile of the stack that ran\n"
      "([concepts/step-time.md](concepts/step-time.md)).\n\n"
      "Errors by fitted profiles flatter: the same rows were fitted. *Source left out* are errors on a source's rows "
      "by\n"
      "profiles fitted without that source; *stack unseen*, by the median of the other stacks.\n",
      fmt::join(page.files, " "), page.catalog_date);
  for (const ReportTable& table : page.tables) text += table_text(table);
  return text + table_text(stack_table(page.stacks));
}

}  // namespace systole::backtest
