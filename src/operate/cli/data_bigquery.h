#pragma once
// `systole data bigquery`, in the group `data` (data.cc).

#include "operate/cli/command.h"

namespace systole::cli {

void add_data_bigquery(Subcommand group, Context& context);

}  // namespace systole::cli
