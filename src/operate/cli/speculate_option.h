#pragma once
// --speculate of the commands that generate text: guesses of the next tokens (execute/serve/drafts.h).

#include <string>

#include "operate/cli/options.h"

namespace systole::cli {

// What drafts_for (operate/run/served_model.h) takes; "": none.
void add_speculate_option(Subcommand command, std::string& asked);

}  // namespace systole::cli
