#pragma once
// Pages of docs/reference that need no command line: ops, events of a run, targets. `systole reference` writes them
// beside those of commands and exit codes; a test compares them, so none becomes stale.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace systole {

struct OpDef;

struct ReferencePage {
  std::string file;  // "ops.md", "targets/slurm.md"
  std::string text;
};

// Parts of such a page: the line below its title, and the text of a table's cell.
inline constexpr const char* kMadeBy =
    "Printed by `systole reference docs/reference`; a test fails when this page is stale.\n\n";
std::string cell(std::string_view text);

std::string metrics_page();
// `cpu_kernel`: the kernel that the cpu backend has for an op; "": none.
std::string ops_page(const std::function<std::string(const OpDef&)>& cpu_kernel);
// An index that sets the targets beside each other, and a page for each with its commands, what it can do and its keys.
std::vector<ReferencePage> target_pages();

}  // namespace systole
