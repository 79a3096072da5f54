#pragma once
// A run as requested, settled before anything is prepared: its mesh, its ranks and machines, what its budget buys, and
// how its workload is prepared.

#include <cstdint>
#include <optional>

#include "operate/run/run_arguments.h"
#include "operate/run/run_messages.h"
#include "operate/run/train_run.h"

namespace systole {

struct RequestedRun {
  Workload asked;     // as read
  Workload workload;  // with its mesh, and one rank's share of the threads
  RunArguments arguments;
  PrepareOptions preparing;
  ResumeMode begins = ResumeMode::anew;
  RankRange count;  // requested number of ranks
  std::int64_t ranks = 1, machines = 1;
  std::optional<Seconds> budget_buys;  // machine time
  Bytes of_node;                       // memory that all ranks of this node share
  bool xla = false;

  // Whether its ranks are separate processes; otherwise this process has all devices.
  bool in_processes() const { return ranks > 1 && !arguments.in_process && !xla; }
  // Whether it is held to a lock. Otherwise a run that may go on takes no new lock.
  bool held() const { return !arguments.lock.empty(); }
};

// Exports the workload's variables and secrets to this process's environment, which its ranks inherit. A dry run
// exports no secrets. Errors: those of read_secrets.
Status enter_environment(const Workload& asked, bool dry_run);

// Reads the run's folder if the run may go on; takes no lock. Errors: invalid, unsupported: arguments that do not fit
// the workload, a plan, or the existing run; does_not_fit; those of reading it.
Result<RequestedRun> settle_run(const Workload& asked, PrepareOptions preparing, const RunArguments& arguments,
                                ResumeMode begins);

// Warns of oddities that do not end the run, in the order of the preparation.
void warn_of(const RequestedRun& run, const PlannedRun& prepared, const RunMessages& messages);

// Checks the prepared Program against the arguments: each injection can act, the plan is the one it is held to. Errors:
// invalid.
Status check_prepared(const RequestedRun& run, const PlannedRun& prepared, const RunMessages& messages);

// What the result depends on, for a run that begins or is held to a lock; otherwise nothing. Errors: invalid, if it
// differs from the lock; those of lock_of.
Result<std::optional<Node>> lock_of_run(const RequestedRun& run, PlannedRun& prepared);

// The step that the run would start from: of the newest checkpoint in its folder, otherwise of the one it began from.
std::int64_t step_begun_from(const RequestedRun& run, const PlannedRun& prepared);

}  // namespace systole
