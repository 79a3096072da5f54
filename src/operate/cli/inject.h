#pragma once
// `--inject data=50ms@100,checkpoint=50ms,kill=write@3`: holds a run up where it is told to, to see that `why` finds
// it, or kills it there, to see that nothing is lost.
//
//   PLACE=TIME[@N]   data, compute, logging, checkpoint; @N: at every N-th step only, else at each
//   kill=PHASE@N     SIGKILL when this process enters the phase for the N-th time: read, compute, reduce, update,
//                    snapshot, write, commit, sweep; gather: an all_gather among ranks

#include <functional>
#include <string>

#include "operate/cli/train_run.h"

namespace systole::cli {

// Errors: invalid, with the places there are.
Status inject(const std::string& text, Clock& clock, RunRequest& request);

}  // namespace systole::cli
