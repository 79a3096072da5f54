#pragma once
// A run whose ranks are separate processes: this process is their agent (operate/launch).

#include "ground/process/signal_watch.h"
#include "operate/launch/preemption.h"
#include "operate/run/run_claim.h"

namespace systole {

// Claims the folder, writes the run's plan and workload into it and begins the budget; of several nodes only the leader
// does. Returns the run's exit code. Errors: those of RunClaim and launch; invalid, of the arguments.
Result<int> run_in_processes(const RequestedRun& run, PlannedRun& prepared, RunClaim& claim, SignalWatch& signals,
                             const PreemptionWatch& preemption, const RunScene& scene);

}  // namespace systole
