#pragma once
// `systole data probe`, in the group `data` (data.cc).

#include "operate/cli/command.h"

namespace systole::cli {

void add_data_probe(Subcommand group, Context& context);

}  // namespace systole::cli
