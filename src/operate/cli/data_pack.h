#pragma once
// `systole data pack`, in the group `data` (data.cc).

#include "operate/cli/command.h"

namespace systole::cli {

void add_data_pack(Subcommand group, Context& context);

}  // namespace systole::cli
