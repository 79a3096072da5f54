#pragma once
// `--inject data=50ms@100,checkpoint=50ms,kill=write@3`: holds a run up where it is told to, to see that `why` finds
// it, or kills it there, to see that nothing is lost. Of many ranks it may name one: rank2.forward=300ms+20.
//
//   PLACE=TIME[@N][+M]   data, forward (or compute), backward, logging, checkpoint, link; @N: at every N-th step only,
//                        +M: from step M on. link: each exchange with other ranks takes so much longer
//   kill=PHASE@N         SIGKILL when this process enters the phase for the N-th time: read, compute, reduce, update,
//                        snapshot, write, commit, sweep; gather: an all_gather among ranks
//   stuck=PLACE@N        at step N it goes no further: data, forward, backward, logging
//   lost=N, mismatch=N   a message of step N is not sent; the collective of another place is run
//   flip=N, nan=N        at step N one bit of a gradient turns, or a weight becomes no number
//   full=N               from the N-th save on there is no room for what this process writes of checkpoints
//   clock=TIME           the process's clocks, steady and calendar, are wrong by so much: 1h, -1h
//
// What befalls a named rank, but for a wrong clock, befalls the first generation alone; so do stuck, lost, mismatch,
// flip and nan.

#include <memory>
#include <string>

#include "execute/comm/faults.h"
#include "operate/cli/train_run.h"

namespace systole::cli {

// What an injection would act on.
struct InjectionScene {
  const Workload& workload;
  const Program& program;
  std::int64_t ranks = 1;
  bool in_process = false;  // the ranks are threads of this one
};
// Before anything is begun. Errors: invalid: it is none, or can never act on such a run.
Status check_injections(const std::string& text, const InjectionScene& scene);

// Errors: invalid, with the places there are; what is of ranks needs request.role. `comm`, which must outlive the run,
// gets what is to be wrapped around the transport.
Status inject(const std::string& text, Clock& clock, RunRequest& request, CommFaults& comm);

// The clock of a rank, or of a process that is none (-1). Null: `right` is. Errors: as inject.
Result<std::unique_ptr<Clock>> injected_clock(const std::string& text, std::int64_t rank, Clock& right);

}  // namespace systole::cli
