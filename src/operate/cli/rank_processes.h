#pragma once
// A run on a mesh whose ranks are processes: this process is their agent (operate/launch). It has planned, holds the
// folder, starts `systole rank FOLDER` for each, passes signals on, and when one is lost ends the generation and starts
// the next from the newest checkpoint.

#include <string>

#include "ground/process/signal_watch.h"
#include "operate/cli/budget.h"
#include "operate/cli/command.h"
#include "operate/cli/rank_options.h"
#include "operate/cli/train_run.h"
#include "operate/launch/preemption.h"

namespace systole::cli {

struct RankProcesses {
  RankArguments ranks;                          // how many is said
  std::string backend, pin_isa, inject, chaos;  // chaos: a hazard file, or empty
  Bytes memory;                                 // of all ranks of this node
  std::string folder;                           // the run's
  std::string metrics;                          // where rank 0 serves them, as --metrics says it; empty: nowhere
  std::optional<Seconds> budget_buys;           // of its machines' time
  std::string ledger;                           // of whoever started it; empty: the run's own
  std::function<bool()> budget_is_used;         // empty: there is none
  // Takes the folder and puts the run's plan and workload into it; of several nodes only the one that leads does.
  std::function<Status()> take;
};

// Returns the run's exit code.
Result<ExitCode> run_in_processes(const RankProcesses& processes, const Prepared& prepared, SignalWatch& signals,
                                  const PreemptionWatch& preemption, Context& context);

}  // namespace systole::cli
