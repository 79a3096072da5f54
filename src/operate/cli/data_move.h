#pragma once
// `systole data push | stage | sync | ls`, and `data verify` of what was staged, in the group `data` (data.cc).

#include "operate/cli/command.h"

namespace systole::cli {

void add_data_move(Subcommand group, Context& context);

// Whether `data verify` is asked about this, and not about a workload: a folder, or a URI of a bucket.
bool is_staged_place(const std::string& text);
ExitCode verify_staged(const std::string& text, Context& context);

}  // namespace systole::cli
