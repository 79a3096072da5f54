#pragma once
// Resolves the arguments of `why`, `ckpt show` and `generate`: a run, or a checkpoint of one.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "describe/spec/workload.h"
#include "execute/checkpoint/keys.h"
#include "execute/checkpoint/restore.h"
#include "ground/store/store.h"
#include "operate/observe/run_files.h"
#include "operate/run/checkpoint_home.h"

namespace systole {

// The default folder of runs: `runs` in the working folder.
inline constexpr const char* kRunsFolder = "runs";

struct RunPlace {
  std::string path;
  std::unique_ptr<Store> store;  // rooted there
};
// A run by folder, name or number; "" is the newest. Errors: not_found, io.
Result<RunPlace> open_run(const std::string& asked);

// The run's full record. Errors: those of read_run, each with the file's path.
Result<RunRecord> record_of(const RunPlace& run);

// The resolved workload kept in the run, whose store is rooted at `path`. Errors: not_found, invalid.
Result<Workload> kept_workload(Store& run, const std::string& path);
inline Result<Workload> workload_of(const RunPlace& run) { return kept_workload(*run.store, run.path); }
// The same for a run that trains a model; only such a run has checkpoints of ours. Errors: also invalid.
Result<Workload> trained_workload_of(const RunPlace& run);

// A home to read from, with keys.
struct CheckpointPlace : CheckpointHome {
  std::optional<std::int64_t> step;  // the requested one
};
// The keys to read with, from the secrets that a workload names. Errors: as checkpoint::read_keys.
Result<std::shared_ptr<const checkpoint::Keys>> keys_of(const CheckpointSpec& spec);

struct MissingKey {
  std::string key;  // key in the workload
  Error why;
};
// The secrets that a new run would not find. A secret in a pipe can be read only once, so it is left to the run.
std::vector<MissingKey> missing_keys(const CheckpointSpec& spec);

// A bare checkpoint folder, by path or URI; nothing: it is not one. Errors: as read_store_uri, home_at and
// checkpoint::read_keys.
Result<std::optional<CheckpointPlace>> checkpoints_in(const std::string& folder, const checkpoint::KeyRefs& keys);
// The checkpoints of the run in the folder `run`, with this spec. Errors: as checkpoint_home, checkpoint::read_keys.
Result<CheckpointPlace> checkpoints_of(const std::string& run, const CheckpointSpec& spec,
                                       const checkpoint::KeyRefs& keys);

// "RUN@STEP", split at the '@' of the last path component only.
struct CheckpointReference {
  std::string run;
  std::optional<std::string> step;
};
CheckpointReference parse_checkpoint_reference(const std::string& text);

// "RUN", "RUN@STEP", or the same with a checkpoint folder instead of a run. Keys: `given` if it has some, otherwise
// those of the run's workload. Errors: not_found, invalid (also for a user's own program), io.
Result<CheckpointPlace> find_checkpoints(const std::string& asked, const checkpoint::KeyRefs& given = {});

// An error of reading checkpoints there, with file paths and a remedy.
Error told_in(const CheckpointPlace& place, Error error);
// The warning that the search for a checkpoint to begin from skipped this one, of the store at `root`. `verified`: the
// argument of `systole ckpt verify` for all of them.
Error passed_over(const checkpoint::Rejected& rejected, const std::string& root, const std::string& verified);

// The requested step, or the newest that verifies. Errors: as open_step, open_newest.
Result<checkpoint::Checkpoint> open_checkpoint(const CheckpointPlace& place);

}  // namespace systole
