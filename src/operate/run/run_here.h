#pragma once
// A run whose devices are all in this process: claims the folder, trains the job, writes its events.

#include <functional>
#include <memory>
#include <string>

#include "ground/base/telemetry.h"
#include "ground/process/signal_watch.h"
#include "operate/launch/preemption.h"
#include "operate/run/run_claim.h"

namespace systole {

// Observers of a run.
struct RunViewers {
  std::function<void(const TrainState&)> began;  // the state that this process begins with, before the first event
  std::function<void(const Event&)> event;       // called on the writer's thread
};

struct HereRun {
  const RequestedRun& asked;
  PlannedRun& prepared;
  RunClaim& claim;
  SignalWatch& signals;
  const PreemptionWatch& preemption;
  TimeLedger& ledger;
  std::unique_ptr<Ring>& spans;  // is created; outlives the ledger
};

struct HereOutcome {
  TrainOutcome end;
  std::string result;  // hash of the final state of a finished run with a lock; otherwise empty
};

// Errors: those of RunClaim, before anything begins; of run_job and run_in_threads; invalid, of arguments that need
// ranks in separate processes; those of the event file, whatever the outcome.
Result<HereOutcome> run_here(const HereRun& run, const RunViewers& viewers, const RunScene& scene);

}  // namespace systole
