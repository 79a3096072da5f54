#pragma once
// Where the checkpoints of a run lie: in its folder, or where checkpoint.folder says, as on another disk.

#include <memory>
#include <string>

#include "describe/spec/workload.h"
#include "ground/store/store.h"

namespace systole::cli {

struct CheckpointHome {
  std::string root;            // of the store, as a path
  std::unique_ptr<Store> own;  // where that is not the run's
  Store* store = nullptr;
  std::string dir;  // in it
  std::string path() const { return dir.empty() ? root : root + "/" + dir; }
  bool outside() const { return own != nullptr; }
};
// `run` is the store at `path`. Errors: not_found (a folder outside of the run's that is not there; `make`: it is
// made), io.
enum class Absent { is_an_error, is_made };
Result<CheckpointHome> checkpoint_home(Store& run, const std::string& path, const CheckpointSpec& spec, Absent absent);

}  // namespace systole::cli
