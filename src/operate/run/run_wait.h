#pragma once
// `--wait` of `run` and `resume`: waits for another process that works on the run.

#include <optional>

#include "operate/run/run_arguments.h"
#include "operate/run/run_messages.h"
#include "operate/run/train_run.h"

namespace systole {

// The wait that --wait requests; without it, a hint suggests --wait, except for ranks of several nodes. Borrows the
// clock. Errors: invalid, not a duration, or ranks of several nodes.
Result<FolderWait> folder_wait(const RunArguments& arguments, const RunScene& scene);

// Claims the run's folder before anything in it is read; nothing without --wait, and for a dry run. During the wait a
// signal ends this process at once: it has nothing to save. Errors: those of folder_wait and claim_folder.
Result<std::optional<RunFolder>> claim_in_turn(const RunArguments& arguments, ResumeMode begins, const RunScene& scene);

}  // namespace systole
