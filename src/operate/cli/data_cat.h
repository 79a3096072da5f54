#pragma once
// `systole data cat`, in the group `data` (data.cc).

#include "operate/cli/command.h"

namespace systole::cli {

void add_data_cat(Subcommand group, Context& context);

}  // namespace systole::cli
