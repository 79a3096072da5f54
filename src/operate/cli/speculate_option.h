#pragma once
// --speculate of the commands that generate text: guesses of the next tokens (execute/serve/draft_source.h).

#include <string>

#include "operate/cli/options.h"

namespace systole::cli {

// What speculation_for (operate/run/speculation.h) takes; "": none.
void add_speculate_option(Subcommand command, std::string& asked);

}  // namespace systole::cli
