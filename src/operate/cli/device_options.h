#pragma once
// --backend and --device: what a command computes on.

#include <string>

#include "operate/cli/options.h"

namespace systole::cli {

// Either sets `backend`; `help`: of --backend, which is returned.
Option add_device_options(Subcommand command, std::string& backend, const std::string& help);
// Of the commands that ask a model; `backend` has the default.
void add_device_options(Subcommand command, std::string& backend);

}  // namespace systole::cli
