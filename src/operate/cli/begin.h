#pragma once
// Commands that create a workload.

#include "operate/cli/command.h"

namespace systole::cli {

void add_init(Subcommand app, Context& context);
void add_import(Subcommand app, Context& context);

}  // namespace systole::cli
