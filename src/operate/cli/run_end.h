#pragma once
// How a run ends, for people and for exit codes: what `run`, `resume` and each rank tell alike.

#include <functional>
#include <string>

#include "execute/train/trainer.h"
#include "operate/cli/command.h"

namespace systole::cli {

// Ctrl-C and SIGTERM end a run after the step at hand; a run that stopped with its state saved can go on.
ExitCode exit_of(const TrainOutcome& outcome);

// No checkpoint is written whose steps are not in the event file, so most often the state is lost with them.
Error events_lost(const Error& why, const std::string& folder, const std::string& file,
                  const Result<TrainOutcome>& outcome);

// Where a run that was begun before begins now.
std::string goes_on_text(std::int64_t step);

// What the run throws is an outcome too: first its events are closed.
Result<TrainOutcome> caught(const std::function<Result<TrainOutcome>()>& run);

// `result`: the hash of its state, where one was asked for. `again`: what `systole resume FOLDER` needs besides.
void tell_end(const TrainOutcome& outcome, const Workload& workload, const std::string& result,
              const std::string& folder, const std::string& again, Context& context);

}  // namespace systole::cli
