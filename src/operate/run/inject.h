#pragma once
// `--inject data=50ms@100,checkpoint=50ms,kill=write@3`: fault injection. Delays a run at a place, to test that `why`
// finds it, or kills it there, to test that nothing is lost. An entry may name one rank: rank2.forward=300ms+20.
//
//   PLACE=TIME[@N][+M]   data, forward (or compute), backward, logging, checkpoint, link; @N: only at every N-th step,
//                        +M: from step M on. link: each exchange with other ranks takes this much longer
//   kill=PHASE@N         SIGKILL when this process enters the phase for the N-th time: read, compute, reduce, update,
//                        snapshot, write, commit, sweep; gather: an all_gather among ranks
//   stuck=PLACE@N        hangs at step N: data, forward, backward, logging
//   lost=N, mismatch=N   a message of step N is not sent; the collective of another place is run
//   flip=N, nan=N        at step N one bit of a gradient flips, or a weight becomes NaN
//   full=N               from the N-th save on, the disk is full for this process's checkpoints
//   clock=TIME           the process's clocks, steady and calendar, are wrong by this much: 1h, -1h
//
// Injections for a named rank, except clock, act in the first generation only; so do stuck, lost, mismatch, flip and
// nan.

#include <memory>
#include <string>

#include "execute/comm/faults.h"
#include "operate/run/train_run.h"

namespace systole {

// The run that an injection would act on.
struct InjectionScene {
  const Workload& workload;
  const Program& program;
  std::int64_t ranks = 1;
  bool in_process = false;  // the ranks are threads of this process
};
// Called before the run begins. Errors: invalid: not an injection, or one that can never act on such a run.
Status check_injections(const std::string& text, const InjectionScene& scene);

// Errors: invalid, with the valid places. Injections for ranks need request.role. `comm` gets the faults to wrap around
// the transport; it must outlive the run.
Status inject(const std::string& text, Clock& clock, RunRequest& request, CommFaults& comm);

// The clock of a rank, or of a process that is no rank (-1). Null: `right` is used. Errors: as inject.
Result<std::unique_ptr<Clock>> injected_clock(const std::string& text, std::int64_t rank, Clock& right);

}  // namespace systole
