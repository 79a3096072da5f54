#pragma once
// Commands with which a workload begins.

#include "operate/cli/command.h"

namespace systole::cli {

void add_init(CLI::App& app, Context& context);
void add_import(CLI::App& app, Context& context);

}  // namespace systole::cli
