#pragma once
// One rank of a run, in the process that its agent started for it (rank_processes.h), with its place in the
// environment.

#include <functional>
#include <string>

#include "operate/run/budget.h"
#include "operate/run/run_here.h"
#include "operate/run/run_messages.h"

namespace systole {

struct RankRequest {
  std::string folder;  // the run's
  std::string backend = "cpu", pin_isa;
  std::string memory;  // for all ranks of this node together
  std::string inject, metrics;
  BudgetArguments budget;
};

// Observers of a rank. All are set.
struct RankViewers {
  std::function<DataProgress(const Workload& workload)> data;           // progress of building its data
  std::function<RunViewers(const PlannedRun& prepared)> first;          // rank 0: called once, when it is prepared
  std::function<void(const TrainOutcome&, const Workload& ran)> ended;  // rank 0, after training
};

// Returns the rank's exit code; afterwards signals no longer end this process. REQUIRES: this process has one thread.
// Errors: those of its place, workload and job; those of run_job, unless this rank is a victim of others.
Result<int> run_rank(const RankRequest& request, const RankViewers& viewers, const RunScene& scene);

}  // namespace systole
