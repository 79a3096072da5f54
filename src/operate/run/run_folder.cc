#include "operate/run/run_folder.h"

#include <algorithm>
#include <filesystem>

#include "execute/checkpoint/folder.h"
#include "execute/checkpoint/retention.h"
#include "ground/base/files.h"
#include "ground/base/shell_quoted.h"
#include "operate/observe/run_files.h"
#include "operate/run/checkpoint_home.h"
#include "operate/run/plan_run.h"
#include "operate/run/run_places.h"

namespace systole {

namespace {

Error holds_a_run(const std::string& path) {
  return error(ErrorKind::exists, "'{}' holds a run already", path)
      .hinted(fmt::format("systole resume {}, or another --folder", shell_word(path)));
}

// `may_be_had`: checks the folder's contents; its error ends the wait, whoever holds the lock.
Result<std::unique_ptr<FileLock>> lock_in_turn(const std::string& path, const FolderWait& wait,
                                               const std::function<Status()>& may_be_had) {
  if (wait.patience <= Seconds()) return lock_folder(path, wait.hint);
  const Seconds until = wait.clock->now() + wait.patience;
  std::string holder;
  const auto held = [&](const std::string& by) -> Status {
    TRY(may_be_had());
    if (holder != by)
      wait.told(fmt::format("the folder '{}' is in use by {}; waiting for it, {} at most", path, by,
                            to_string(holder.empty() ? wait.patience : until - wait.clock->now())));
    holder = by;
    return {};
  };
  Result<std::unique_ptr<FileLock>> lock = lock_folder(path, wait.patience, *wait.clock, held);
  if (lock.ok() || lock.error().kind != ErrorKind::busy) return lock;
  Error busy = std::move(lock).error();
  busy.message += fmt::format(", for {} and longer", to_string(wait.patience));
  return busy;
}

}  // namespace

Result<RunFolder> claim_folder(const std::string& path, ResumeMode begins, const FolderWait& wait) {
  std::error_code failed;
  if (begins == ResumeMode::where_it_was && !is_folder(path)) {
    return error(ErrorKind::not_found, "there is no run folder '{}'", path)
        .hinted("'systole runs' lists those there are");
  }
  std::filesystem::create_directories(path, failed);
  if (failed)
    return error(ErrorKind::io, "cannot make the run folder '{}': {}", path, failed.message())
        .hinted("--folder: a folder that may be made and written");
  const auto may_be_had = [&]() -> Status {
    if (begins == ResumeMode::anew && path_exists(path + "/" + RunFiles::plan)) return holds_a_run(path);
    return {};
  };
  RunFolder folder;  // filled one by one: gcc loses what a braced list has made before a TRY that returns
  folder.path = path;
  folder.lock = TRY(lock_in_turn(path, wait, may_be_had));
  folder.store = TRY(open_posix_store(path));
  folder.holds_run = TRY(folder.store->exists(RunFiles::plan));
  TRY(begins_as(folder, begins));
  return folder;
}

Status begins_as(const RunFolder& folder, ResumeMode begins) {
  if (folder.holds_run && begins == ResumeMode::anew) return holds_a_run(folder.path);
  if (!folder.holds_run && begins == ResumeMode::where_it_was)
    return error(ErrorKind::not_found, "'{}' holds no run", folder.path)
        .hinted("systole run WORKLOAD --folder " + shell_word(folder.path));
  return {};
}

Status claim_checkpoints(RunFolder& run, const CheckpointSpec& spec, const FolderWait& wait) {
  const Absent absent = run.holds_run ? Absent::is_an_error : Absent::is_made;
  const CheckpointHome home = TRY(checkpoint_home(run.path, spec, absent));
  if (!home.outside) return {};
  const auto may_be_had = [&]() -> Status {
    if (run.holds_run || TRY(checkpoint::list_steps(home.folder)).empty()) return {};
    return key_error(ErrorKind::exists, "checkpoint.folder", "'{}' holds the checkpoints of another run", home.root)
        .hinted("--set checkpoint.folder=" + home.root + "-2");
  };
  if (!home.local.empty()) run.checkpoints_lock = TRY(lock_in_turn(home.local, wait, may_be_had));
  TRY(may_be_had());
  return home.local.empty() ? own_home(home, run.path) : Status();
}

Status same_run(const RunFolder& run, const Workload& workload) {
  if (numbers_hash(TRY(kept_workload(*run.store, run.path))) == numbers_hash(workload)) return {};
  return error(ErrorKind::invalid, "'{}' holds a run of a workload with other numbers (model, data or train)", run.path)
      .hinted("put the workload back, or take another --folder");
}

Status check_disk(const PlannedRun& p, const CheckpointHome& home) {
  Bytes per_save;
  for (const ProgramValue& value : p.job.program->values) {
    if (value.residence == Residence::parameter || value.residence == Residence::state) per_save += value.type.bytes();
  }
  const CheckpointSpec& spec = p.workload.checkpoint;
  const checkpoint::Retention retention{static_cast<int>(spec.keep), spec.keep_every, spec.best};
  const double steps =
      p.workload.train.time ? 0 : p.plan.time.steps;  // a prediction of its speed is no ground to refuse
  TRY(checkpoint::check_space(home.folder, per_save, retention, spec.every.steps, static_cast<std::int64_t>(steps),
                              home.path));
  return {};
}

}  // namespace systole
