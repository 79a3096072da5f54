#pragma once
// One process's part of a run: from a prepared job to its end, a stop or an error, with all events written to the run's
// folder. Shared by `run` and `resume`. Prints nothing.

#include <functional>
#include <string>

#include "execute/checkpoint/restore.h"
#include "execute/train/trainer.h"
#include "operate/run/begun_state.h"
#include "operate/run/plan_run.h"
#include "operate/run/run_folder.h"

namespace systole {

class FullDisk;

// Which kernel, for which instructions, serves how many instances of each op: a heading, then a line each.
std::string kernels_text(const Device& device);

// Calls a hook before each collective, and forwards all calls.
class HookedCollectives final : public CollectiveObserver {
 public:
  std::function<void(const ObservedCollective&)> before;
  CollectiveObserver* then = nullptr;  // next observer; null: none
  void begin(const ObservedCollective& seen) override {
    if (then != nullptr) then->begin(seen);
    before(seen);
  }
  void end(const ObservedCollective& seen, bool ok, Bytes sent) override {
    if (then != nullptr) then->end(seen, ok, sent);
  }
};

struct RunRequest {
  std::string folder;
  RankRole role;
  bool documents = true;  // this process writes plan.json and workload.yaml; otherwise the ranks' starter does
  bool resume = false;    // go on from the newest checkpoint that verifies, if any
  std::string command;    // for the record
  TrainHooks hooks;
  std::function<void(std::int64_t)> before_batch;  // called on the reader's thread
  std::function<bool()> stop_requested;
  // Called with a warning for each checkpoint that is skipped in the search for one to go on from.
  std::function<void(const Error&)> passed_over;
  KernelObserver* observer = nullptr;              // observes every kernel
  StageWatch* stages = nullptr;                    // observes the stages of this rank
  Executor* executor = nullptr;                    // the job's, for fault injection
  std::shared_ptr<FullDisk> disk;                  // fault injection over the checkpoint store; null: none
  std::function<Seconds()> time_to_stop;           // time left of the notice after a stop request
  std::shared_ptr<HookedCollectives> collectives;  // fault injection before this rank's collectives; null: none
  std::optional<TimeBudget> budget;                // only rank 0's is used
  Ring* ring = nullptr;                            // gets the ledger's intervals from the first event on
  // Called with the initial state, after compiling and restoring and before the first event.
  std::function<void(const TrainState&)> began;
};

// REQUIRES: prepared.executor is not started. Errors: does_not_fit and no_space before anything is started; corrupt,
// io; those of the trainer. The outcome's state says where it ended. Failed writes of events are not returned: ask the
// sink.
Result<TrainOutcome> run_job(PlannedRun& prepared, RunFolder& folder, const RunRequest& request, Clock& clock,
                             TimeLedger& ledger, EventSink& events);

}  // namespace systole
