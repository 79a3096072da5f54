#pragma once
// The pages under docs/reference, printed from the program itself: commands and their options, exit codes, ops, what a
// run's events hold, keys of the workload. `systole reference DIR` writes them; a test compares, so that none can grow
// stale and no option comes or goes unseen.

#include <string>
#include <vector>

namespace systole::cli {

struct ReferencePage {
  std::string file;  // "commands.md"
  std::string text;
};
std::vector<ReferencePage> reference_pages();

}  // namespace systole::cli
