#pragma once
// The pages of docs/reference, generated from the program: targets, commands and options, exit codes, ops, events of a
// run, workload keys, terms. `systole reference DIR` writes them; a test compares them, so none
// becomes stale and no option changes unnoticed.

#include <vector>

#include "operate/reference/reference_page.h"

namespace systole::cli {

std::vector<ReferencePage> reference_pages();

}  // namespace systole::cli
