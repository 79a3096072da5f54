#pragma once
// How a run ends; shared by `run`, `resume` and each rank.

#include <functional>
#include <string>

#include "execute/train/trainer.h"

namespace systole {

// The exit code (ground/base/exit_code.h). Ctrl-C and SIGTERM end a run after the current step; a run that saved its
// state can go on.
int exit_of(const TrainOutcome& outcome);

// The event file failed. No checkpoint is written whose steps are not in the event file, so usually the state is lost
// too.
Error events_lost(const Error& why, const std::string& folder, const std::string& file,
                  const Result<TrainOutcome>& outcome);

// The same during the run, as a warning.
Error events_refused(Error why, const std::string& folder, const std::string& file);

// The message of a run that goes on.
std::string goes_on_text(std::int64_t step);
std::string stopping_text(std::int64_t step);  // after a stop request; the save may take a while

// Exceptions of the run become errors, so its events are closed first.
Result<TrainOutcome> caught(const std::function<Result<TrainOutcome>()>& run);

}  // namespace systole
