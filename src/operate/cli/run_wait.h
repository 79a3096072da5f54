#pragma once
// `--wait` of `run` and `resume`: another process may work on the run, and is waited for.

#include <memory>

#include "ground/store/lock.h"
#include "operate/cli/run_command.h"

namespace systole::cli {

// The lock of the run's folder once no other process holds it; null where there is no folder yet, and for a dry run.
// Meanwhile a signal ends this process at once: it has nothing to save.
// REQUIRES: arguments.wait is said. Errors: invalid, no length of time, or ranks of several nodes; exists, the folder
// holds a run and one is to begin anew; busy, it was held for longer than that; io.
Result<std::shared_ptr<FileLock>> wait_for_folder(const RunArguments& arguments, Begins begins, Context& context);

// As claim_folder; where the folder is busy the hint tells of --wait, unless ranks of several nodes are asked for.
Result<RunFolder> claim_run_folder(const RunArguments& arguments, Begins begins);

}  // namespace systole::cli
