#pragma once
// `systole data lengths`, in the group `data` (data.cc).

#include "operate/cli/command.h"

namespace systole::cli {

void add_data_lengths(Subcommand group, Context& context);

}  // namespace systole::cli
