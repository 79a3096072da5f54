#pragma once
// The pages of docs/reference, generated from the program: targets, commands and options, exit codes, ops, events of a
// run, workload keys, terms. `systole reference DIR` writes them; a test compares them, so none
// becomes stale and no option changes unnoticed.

#include <string>
#include <string_view>
#include <vector>

namespace systole::cli {

struct ReferencePage {
  std::string file;  // "commands.md", "targets/slurm.md"
  std::string text;
};
std::vector<ReferencePage> reference_pages();

// Parts of such a page: the line below its title, and the text of a table's cell.
inline constexpr const char* kMadeBy =
    "Printed by `systole reference docs/reference`; a test fails when this page is stale.\n\n";
std::string cell(std::string_view text);

}  // namespace systole::cli
