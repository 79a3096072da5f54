#pragma once
// The runs that were submitted from a folder of runs, as rows: those known to be over out of the index, the others as
// their clusters see them, each of which is asked once; or as they were seen last, where that cannot be asked.

#include <string>
#include <vector>

#include "operate/cli/command.h"
#include "operate/observe/submitted_index.h"

namespace systole::cli {

// Newest first. `before` is what the index has, and is given what is seen now; what it does not take is a warning, for
// the next time finds it again, and so is a cluster that cannot be asked: its runs are stale, and unknown where they
// were never seen. Throws what keeps a record from being read.
std::vector<SubmittedRow> submitted_rows(const std::string& folder, std::vector<SubmittedRow> before,
                                         SubmittedIndex& index, Context& context);

}  // namespace systole::cli
