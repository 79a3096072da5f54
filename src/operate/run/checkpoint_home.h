#pragma once
// Where a run's checkpoints are, as checkpoint.folder says: in its folder, in another folder of this machine, or in a
// store by URI. Only here is that key read and its store opened.
//
//   checkpoint.folder                 store                     lock of the run that writes there
//   a path inside the run's folder    the run's folder          that of the run's folder
//   another path, or file:///path     that folder               its own, a file `lock`
//   another store (store_forms)       opened by its URI         none; the object `owner` says of which run it is
//
// In memory there can be none: no other process could go on from them.

#include <memory>
#include <string>

#include "describe/spec/source.h"
#include "describe/spec/workload.h"
#include "execute/checkpoint/folder.h"
#include "execute/checkpoint/keys.h"
#include "ground/store/lock.h"
#include "ground/store/object_store.h"

namespace systole {

struct CheckpointHome {
  std::string path = {};   // of the checkpoint folder, as shown: a path, or a URI
  std::string root = {};   // of the store: paths of its objects are shown below it
  std::string local = {};  // the store's folder on this machine; empty: it is no folder of this machine
  bool outside = false;    // not in the run's folder
  checkpoint::Folder folder = {};
};

// The home of the run in the folder `run`, its folder without keys: to list steps. Errors: invalid, unsupported (a
// folder that check_checkpoint_folder refuses); not_found (a missing folder outside the run's; `is_made` creates it
// instead), io.
enum class Absent { is_an_error, is_made };
Result<CheckpointHome> checkpoint_home(const std::string& run, const CheckpointSpec& spec, Absent absent);
// The same with the keys that the spec names, to read and save: before the first save there, keys may be created.
// Errors: also as checkpoint::read_keys.
Result<CheckpointHome> open_home(const std::string& run, const CheckpointSpec& spec,
                                 Absent absent = Absent::is_an_error);
// A checkpoint folder by its path or URI, without a run and without keys. Errors: as open_store.
Result<CheckpointHome> home_at(const StoreUri& uri);

checkpoint::KeyRefs key_refs_of(const CheckpointSpec& spec);

// Refuses a checkpoint.folder in which no run could keep checkpoints, at its place. Opens nothing. Errors: invalid;
// unsupported, with the stores that there are.
Status check_checkpoint_folder(const CheckpointSpec& spec, const WorkloadSource& source);

// Keeps runs from writing there until the lock is destroyed. Errors: busy, io; unsupported: the store has no lock.
Result<std::unique_ptr<FileLock>> lock_home(const CheckpointHome& home);
// Makes a home without a lock that of the run in the folder `run`, for good: processes of one run exclude each other by
// the run's own lock. Errors: busy (it is another run's), io.
Status own_home(const CheckpointHome& home, const std::string& run);

}  // namespace systole
