#pragma once
// `--inject data=50ms@100,checkpoint=50ms`: holds a run up where it is told to, to see that `why` finds it. Places: data,
// compute, logging, checkpoint; @N: from every N-th step on only, else at each.

#include <functional>
#include <string>

#include "operate/cli/train_run.h"

namespace systole::cli {

// Errors: invalid, with the places there are.
Status inject(const std::string& text, Clock& clock, RunRequest& request);

}  // namespace systole::cli
