#pragma once
// A run's folder: its owner, its contents, and disk space for its checkpoints.

#include <functional>
#include <memory>
#include <string>

#include "describe/spec/workload.h"
#include "execute/checkpoint/folder.h"
#include "ground/base/clock.h"
#include "ground/store/lock.h"
#include "ground/store/store.h"

namespace systole {

struct CheckpointHome;  // checkpoint_home.h

struct PlannedRun;

// How to wait for a folder that another process holds.
struct FolderWait {
  Seconds patience = {};                                   // zero: do not wait
  Clock* clock = nullptr;                                  // REQUIRES: set if patience is not zero
  std::string_view hint = "wait for it";                   // as in lock_folder
  std::function<void(const std::string& text)> told = {};  // gets messages about the wait
};

// Claims the folder for this process: creates and locks it. `anew` is refused at once if the folder holds a run;
// `where_it_was` if it holds none. Errors: exists, not_found, busy, io.
enum class ResumeMode { anew, where_it_was, either };
struct RunFolder {
  std::string path;
  std::unique_ptr<FileLock> lock;
  std::unique_ptr<Store> store;
  bool holds_run = false;
  std::unique_ptr<FileLock> checkpoints_lock = {};  // of their folder, if outside the run's and on this machine
};
Result<RunFolder> claim_folder(const std::string& path, ResumeMode begins, const FolderWait& wait = {});
Status begins_as(const RunFolder& folder, ResumeMode begins);  // errors: exists, not_found
// A run that begins creates checkpoint.folder if it is outside; the folder must hold no other run's checkpoints. Only a
// folder of this machine can be waited for.
// Errors: exists, busy, not_found, io.
Status claim_checkpoints(RunFolder& run, const CheckpointSpec& spec, const FolderWait& wait = {});
// Errors: invalid, if the run in the folder is of another workload; those of reading it.
Status same_run(const RunFolder& run, const Workload& workload);

// Checks that `home` has space for all checkpoints to be kept, plus one in writing. Errors: does_not_fit, io.
Status check_disk(const PlannedRun& prepared, const CheckpointHome& home);

}  // namespace systole
