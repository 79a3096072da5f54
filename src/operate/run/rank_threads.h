#pragma once
// A run whose ranks are threads of this process: `run --in-process`. Each rank has its own device, arena, executor and
// ledger; they communicate over the loopback transport. Rank 0 keeps the run's records; the others keep their events
// under ranks/<rank>/.

#include "operate/run/train_run.h"

namespace systole {

// The workload for one rank: with its share of the process's threads, unless the workload says how many.
Workload for_ranks(const Workload& workload);

// As run_job, for all ranks. `first` is rank 0's, prepared and not started; `preparing` prepares the others. Errors:
// the cause, with the rank's name, not the failures of its victims.
Result<TrainOutcome> run_in_threads(PlannedRun& first, const PrepareOptions& preparing, RunFolder& folder,
                                    const RunRequest& request, Clock& clock, TimeLedger& ledger, EventSink& events);

}  // namespace systole
