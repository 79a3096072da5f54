#pragma once
// One process's work on a run: from a prepared job to its end, a stop or an error, with everything that happened as
// events in the run's folder. What `run` and `resume` share. Prints nothing.

#include <functional>
#include <string>

#include "execute/checkpoint/restore.h"
#include "execute/train/trainer.h"
#include "operate/cli/session.h"

namespace systole::cli {

class FullDisk;

// Which kernel, compiled for which instructions, serves how many of each op: a line each, after a heading.
std::string kernels_text(const Device& device);

// Where a rank sits among those that do a run together.
struct RankRole {
  std::int64_t rank = 0;                 // its device in the mesh
  Communicator* communicator = nullptr;  // with the others; null: there are none
  checkpoint::SaveGroup group;
  bool first() const { return rank == 0; }  // who writes what is of the run as a whole
};

// Acts on a collective before it begins, and passes all on.
class HookedCollectives final : public CollectiveObserver {
 public:
  std::function<void(const SeenCollective&)> before;
  CollectiveObserver* then = nullptr;  // null: nobody
  void begin(const SeenCollective& seen) override {
    if (then != nullptr) then->begin(seen);
    before(seen);
  }
  void end(const SeenCollective& seen, bool ok, Bytes sent) override {
    if (then != nullptr) then->end(seen, ok, sent);
  }
};

struct RunRequest {
  std::string folder;
  RankRole role;
  bool documents = true;  // plan.json and workload.yaml are written here, not by who started the ranks
  bool resume = false;    // go on from the newest checkpoint that verifies, if there is one
  std::string command;    // for the record
  TrainHooks hooks;
  std::function<void(std::int64_t)> before_batch;  // on the reader's thread
  std::function<bool()> stop_requested;
  // Told of what was set aside while looking for a checkpoint to go on from.
  std::function<void(const checkpoint::Rejected&)> rejected;
  KernelObserver* observer = nullptr;              // told of every kernel
  StageWatch* stages = nullptr;                    // told of what this rank does
  Executor* executor = nullptr;                    // of the job, for faults on purpose
  std::shared_ptr<FullDisk> disk;                  // over the store of checkpoints, on purpose too; null: none is
  std::function<Seconds()> time_to_stop;           // what is left of the notice once a stop was requested
  std::shared_ptr<HookedCollectives> collectives;  // before those of this rank, on purpose; null: nothing
  std::optional<TimeBudget> budget;                // rank 0's counts
  Ring* ring = nullptr;                            // gets the stretches of the ledger from the first event on
  // Told where this process begins, once all is compiled and restored and before the first event.
  std::function<void(const TrainState&)> began;
};

// Claims the folder for this process: makes it and locks it, unless its lock is `held` already. One that must begin
// anew is refused a folder that holds a run, one that must go on where it was, a folder that holds none. Errors:
// exists, not_found, busy, io.
enum class Begins { anew, where_it_was, either };
struct RunFolder {
  std::string path;
  std::shared_ptr<FileLock> lock;
  std::unique_ptr<Store> store;
  bool holds_run = false;
  std::unique_ptr<FileLock> checkpoints_lock = {};  // of their folder, where it is outside of the run's
};
Result<RunFolder> claim_folder(const std::string& path, Begins begins, std::shared_ptr<FileLock> held = nullptr);
Error holds_a_run(const std::string& path);  // of one that must begin anew
// Of a run that begins it makes checkpoint.folder where that is outside, which must hold no other run's. Errors:
// exists, busy, not_found, io.
Status claim_checkpoints(RunFolder& run, const CheckpointSpec& spec);
// Errors: invalid, when the run in the folder is another workload's; those of reading it.
Status same_run(const RunFolder& run, const Workload& workload);

// That a run goes on which the workload fits: by its newest checkpoint whose manifest reads. Before anything of the run
// is written. Errors: invalid.
Status check_goes_on(const Prepared& prepared, const RunFolder& run);

// That an exact run which begins from the checkpoint computes as the one that saved it. Errors: invalid.
Status computes_alike(const checkpoint::Manifest& from, const Prepared& prepared);

// Room for all checkpoints that will be kept, and for one being written. Errors: does_not_fit, io.
Status check_disk(const Prepared& prepared, const RunFolder& run);

// REQUIRES: prepared.executor is not started. Errors: does_not_fit and no_space before anything is started; corrupt,
// io; those of the trainer. The outcome's state says where it ended. Whether the events are written is the sink's to
// tell.
Result<TrainOutcome> run_job(Prepared& prepared, RunFolder& folder, const RunRequest& request, Clock& clock,
                             TimeLedger& ledger, EventSink& events);

}  // namespace systole::cli
