// A run's folder: whose it is, what it holds, and whether its checkpoints have room.
#include <algorithm>
#include <filesystem>

#include "ground/base/files.h"
#include "ground/store/lock.h"
#include "operate/cli/checkpoint_home.h"
#include "operate/cli/train_run.h"
#include "operate/observe/run_files.h"
#include "operate/render/quote.h"

namespace systole::cli {

Error holds_a_run(const std::string& path) {
  return error(ErrorKind::exists, "'{}' holds a run already", path)
      .hinted(fmt::format("systole resume {}, or another --folder", path));
}

Result<RunFolder> claim_folder(const std::string& path, Begins begins, std::shared_ptr<FileLock> held) {
  std::error_code failed;
  if (begins == Begins::where_it_was && !is_folder(path)) {
    return error(ErrorKind::not_found, "there is no run folder '{}'", path)
        .hinted("'systole runs' lists those there are");
  }
  std::filesystem::create_directories(path, failed);
  if (failed)
    return error(ErrorKind::io, "cannot make the run folder '{}': {}", path, failed.message())
        .hinted("--folder: a folder that may be made and written");
  if (held == nullptr) held = TRY(lock_folder(path));
  RunFolder folder{path, std::move(held), TRY(open_posix_store(path))};
  folder.holds_run = TRY(folder.store->exists(RunFiles::plan));
  if (folder.holds_run && begins == Begins::anew) return holds_a_run(path);
  if (!folder.holds_run && begins == Begins::where_it_was)
    return error(ErrorKind::not_found, "'{}' holds no run", path)
        .hinted("systole run WORKLOAD --folder " + shell_word(path));
  return folder;
}

Status claim_checkpoints(RunFolder& run, const CheckpointSpec& spec) {
  const Absent absent = run.holds_run ? Absent::is_an_error : Absent::is_made;
  const CheckpointHome home = TRY(checkpoint_home(*run.store, run.path, spec, absent));
  if (!home.outside()) return {};
  run.checkpoints_lock = TRY(lock_folder(home.root));
  if (run.holds_run || TRY(checkpoint::list_steps({home.store, home.dir})).empty()) return {};
  return error(ErrorKind::exists, "checkpoint.folder: '{}' holds the checkpoints of another run", home.root)
      .hinted("--set checkpoint.folder=" + home.root + "-2");
}

Status same_run(const RunFolder& run, const Workload& workload) {
  const std::string text = TRY(read_text(*run.store, RunFiles::workload));
  const Workload begun = TRY(read_workload(text, run.path + "/" + RunFiles::workload));
  if (numbers_hash(begun) == numbers_hash(workload)) return {};
  return error(ErrorKind::invalid, "'{}' holds a run of a workload with other numbers (model, data or train)", run.path)
      .hinted("put the workload back, or take another --folder");
}

Status check_disk(const Prepared& p, const RunFolder& run) {
  Bytes per_save;
  for (const ProgramValue& value : p.job.program->values) {
    if (value.residence == Residence::parameter || value.residence == Residence::state) per_save += value.type.bytes();
  }
  const CheckpointHome home = TRY(checkpoint_home(*run.store, run.path, p.workload.checkpoint, Absent::is_an_error));
  const checkpoint::Folder folder{home.store, home.dir};
  const CheckpointSpec& spec = p.workload.checkpoint;
  const checkpoint::Retention retention{static_cast<int>(spec.keep), spec.keep_every, spec.best};
  TRY(checkpoint::check_space(folder, per_save, retention, std::max<std::int64_t>(1, spec.every.steps), 0));
  return {};
}

}  // namespace systole::cli
