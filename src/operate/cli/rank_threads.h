#pragma once
// A run on a mesh whose ranks are threads of this process: `run --in-process`. Each has a device, an arena, an executor
// and a ledger of its own; they speak over the loopback. Rank 0 keeps the run's records; the others keep their events
// under ranks/<rank>/.

#include "operate/cli/train_run.h"

namespace systole::cli {

// How many ranks the workload's mesh has.
std::int64_t ranks_of(const Workload& workload);

// The workload as each rank has it: its share of the process's threads, unless it says how many.
Workload for_ranks(const Workload& workload);

// As run_job, for all ranks. `first` is rank 0's, prepared and not started; `preparing` prepares the others.
// Errors: the cause, with the rank's name, where others are its victims.
Result<TrainOutcome> run_in_threads(Prepared& first, const PrepareOptions& preparing, RunFolder& folder,
                                    const RunRequest& request, Clock& clock, TimeLedger& ledger, EventSink& events);

}  // namespace systole::cli
