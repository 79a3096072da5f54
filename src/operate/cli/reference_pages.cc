#include "operate/cli/reference_pages.h"

#include <CLI/App.hpp>

#include <algorithm>
#include <iterator>

#include "describe/ir/op.h"
#include "describe/spec/workload.h"
#include "operate/cli/command.h"
#include "operate/explain/topic.h"
#ifdef SYSTOLE_HAS_CPU
#include "execute/backends/cpu/node_call.h"
#endif

namespace systole::cli {
namespace {

std::string row_of(const CLI::Option& option) {
  std::string name = option.get_positional() ? option.get_name(true) : option.get_name(false, true);
  if (option.get_positional() && option.nonpositional()) name = option.get_name(false, true);
  const bool flag = option.get_expected_max() == 0;
  return fmt::format("| `{}` | {} | {} | {} |\n", cell(name),
                     flag                    ? "flag"
                     : option.get_required() ? "required"
                                             : "",
                     cell(option.get_default_str()), cell(option.get_description()));
}

std::string sentence(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  if (!text.ends_with('.')) text += '.';
  return text;
}

void describe(const CLI::App& app, const std::string& prefix, std::string& text) {
  const std::string name = prefix + app.get_name();
  const auto children = app.get_subcommands([](const CLI::App* c) { return !c->get_group().empty(); });
  text += fmt::format("## {}\n\n{}\n\n", name, sentence(app.get_description()));
  std::string rows;
  for (const CLI::Option* option : app.get_options())
    if (!option->get_group().empty() && option->get_name(false, true) != "-h,--help") rows += row_of(*option);
  if (!rows.empty()) text += "| option | | default | |\n|---|---|---|---|\n" + rows + "\n";
  for (const CLI::App* child : children) describe(*child, name + " ", text);
}

// "`missing_key`, `unknown_key`": all error codes.
std::string error_codes() {
  std::string names;
  for (std::uint64_t n = 1; const std::optional<ErrorCode> code = error_code_of(n); ++n)
    names += fmt::format("{}`{}`", n == 1 ? "" : ",\n", name_of(*code));
  return names;
}

std::string commands_page() {
  const std::unique_ptr<Clock> clock = real_clock();
  Printer out(*clock);
  Context context{out, *clock, {}, ExitCode::done};
  std::string text = fmt::format(
      "# Commands\n\n{}Data goes to stdout, messages and progress to stderr. The options of `systole` itself may "
      "stand\n"
      "anywhere. What the process ends with: [exit codes](exit-codes.md).\n\n"
      "With `--json` an error is a document: `kind` and `message`; where they are known, `file`, `line`, `col`, "
      "`hint`,\n"
      "`key` (the key of the workload that it is about) and `code`. Messages may change, codes do not. They "
      "are\n{}.\n\n",
      kMadeBy, error_codes());
  describe(*make_app(context), "", text);
  text.pop_back();
  return text;
}

#ifdef SYSTOLE_HAS_CPU
std::string cpu_kernel(const OpDef& op) {
  const cpu::KernelEntry* entry = cpu::entry_of(op.name);
  return entry != nullptr ? entry->kernel : op.view ? "view" : std::string_view(op.name) == "repeat" ? "loop" : "";
}
#else
std::string cpu_kernel(const OpDef&) { return ""; }
#endif

}  // namespace

std::vector<ReferencePage> reference_pages() {
  std::vector<ReferencePage> pages = {{"commands.md", commands_page()},      {"exit-codes.md", exit_codes_reference()},
                                      {"glossary.md", glossary_reference()}, {"keys.md", keys_reference()},
                                      {"metrics.md", metrics_page()},        {"ops.md", ops_page(cpu_kernel)}};
  std::ranges::move(target_pages(), std::back_inserter(pages));
  return pages;
}

}  // namespace systole::cli
