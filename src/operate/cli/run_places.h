#pragma once
// What the words after `why`, `ckpt show` or `generate` mean: a run, or a checkpoint of one.

#include <memory>
#include <optional>
#include <string>

#include "describe/spec/workload.h"
#include "execute/checkpoint/keys.h"
#include "execute/checkpoint/restore.h"
#include "ground/store/store.h"
#include "operate/cli/checkpoint_home.h"
#include "operate/observe/run_files.h"

namespace systole::cli {

struct RunPlace {
  std::string path;
  std::unique_ptr<Store> store;  // rooted there
};
// A run's folder, name or number; "" is the newest. Errors: not_found, io.
Result<RunPlace> open_run(const std::string& asked);

// All that the run tells of itself. Errors: those of read_run, each with the file's path.
Result<RunRecord> record_of(const RunPlace& run);

// The resolved workload that the run keeps. Errors: not_found, invalid.
Result<Workload> workload_of(const RunPlace& run);
// The same of a run that trains a model: the checkpoints of any other are its own affair. Errors: also invalid.
Result<Workload> trained_workload_of(const RunPlace& run);

struct CheckpointPlace {
  std::string path;  // of the checkpoint folder
  std::string root;  // of the store
  std::unique_ptr<Store> store;
  checkpoint::Folder folder;
  std::optional<std::int64_t> step;  // that was asked for
};
// The secrets that a workload refers to, to read with. Errors: as checkpoint::read_keys.
Result<std::shared_ptr<const checkpoint::Keys>> keys_of(const CheckpointSpec& spec);
// The same of a run that saves there: until it has saved, they may be made. Errors: also io.
Result<std::shared_ptr<const checkpoint::Keys>> keys_of(const CheckpointSpec& spec, const CheckpointHome& home);

// A folder of checkpoints by itself; nothing: it is none. Errors: as checkpoint::read_keys; io.
Result<std::optional<CheckpointPlace>> checkpoints_in(const std::string& folder, const checkpoint::KeyRefs& keys);
// Those of a run with this spec. Errors: not_found (a folder outside of the run's); as checkpoint::read_keys.
Result<CheckpointPlace> checkpoints_of(RunPlace run, const CheckpointSpec& spec, const checkpoint::KeyRefs& keys);
checkpoint::KeyRefs key_refs_of(const CheckpointSpec& spec);

// What stands before the '@' of "RUN@STEP", and behind it: an '@' of a folder above is none.
struct AskedCheckpoint {
  std::string run;
  std::optional<std::string> step;
};
AskedCheckpoint read_asked_checkpoint(const std::string& text);

// "RUN", "RUN@STEP", or the same with a checkpoint folder instead of a run. Keys: `given` where it has some, else those
// of the run's workload. Errors: not_found, invalid (also of a program of the user's), io.
Result<CheckpointPlace> find_checkpoints(const std::string& asked, const checkpoint::KeyRefs& given = {});

// An error, and those behind it, of a store at `root`: files as paths.
Error below(const std::string& root, Error error);
// An error of reading checkpoints there: files as paths, and what to do.
Error told_in(const CheckpointPlace& place, Error error);

// The step that was asked for, or the newest that verifies. Errors: as open_step, open_newest.
Result<checkpoint::Checkpoint> open_checkpoint(const CheckpointPlace& place);

}  // namespace systole::cli
