#pragma once
// The files of a folder: a run's own (its event files are appended to), a data folder, a folder of weights. Checkpoints
// use an object store instead (object_store.h), which may itself use such files. Paths are relative to the store's
// root, '/'-separated, without "." or "..".
//
// Durability: bytes are durable after WritableFile::sync; a name is durable after sync_dir of its folder. `faulty`
// (faulty.h) forgets everything else, so the tests find callers that do not sync.
//
// A path that is absolute, empty or contains "." or ".." is refused with kind invalid by every call.
//
// Thread safety: a Store may be used from several threads; a WritableFile by one at a time.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/result.h"
#include "ground/base/units.h"
#include "ground/store/lock.h"

namespace systole {

class WritableFile {
 public:
  virtual ~WritableFile() = default;  // closes; does not sync
  virtual Status append(std::span<const std::byte> bytes) = 0;
  virtual Status sync() = 0;   // the bytes appended so far survive a power cut
  virtual Status close() = 0;  // idempotent
};

class Store {
 public:
  virtual ~Store() = default;

  // Creates or truncates. Errors: io, no_space, not_found (no such folder).
  virtual Result<std::unique_ptr<WritableFile>> create(std::string_view path) = 0;
  // Opens at the end, creating if absent.
  virtual Result<std::unique_ptr<WritableFile>> append_to(std::string_view path) = 0;
  // Fills `into` from `offset`. Errors: not_found, io; corrupt when the file is shorter.
  virtual Status read(std::string_view path, std::int64_t offset, std::span<std::byte> into) = 0;
  virtual Result<Bytes> size(std::string_view path) = 0;
  virtual Result<bool> exists(std::string_view path) = 0;
  // Names (not paths) in a folder, sorted; folders end in '/'. "" is the root. Errors: not_found.
  virtual Result<std::vector<std::string>> list(std::string_view dir) = 0;
  virtual Status make_dirs(std::string_view dir) = 0;  // with parents; fine if there
  // Atomic within the store; replaces the target.
  virtual Status rename(std::string_view from, std::string_view to) = 0;
  // A second name for the file `from`, made only if `to` does not exist; atomic, on network file systems too.
  // Errors: exists (`to` has a file already), not_found, unsupported (this file system has no links).
  virtual Status link(std::string_view from, std::string_view to) = 0;
  // A file or an empty folder; fine if absent. Errors: exists when the folder is not empty.
  virtual Status remove(std::string_view path) = 0;
  // An empty folder, not a link to one; fine if absent. Errors: exists if it is not empty or cannot be removed: a mount
  // point, or its parent may not be changed.
  virtual Status remove_dir(std::string_view dir) = 0;
  virtual Status sync_dir(std::string_view dir) = 0;
  // An exclusive lock among all processes and machines; does not wait. The system releases the lock when its holder
  // dies. The lock is advisory. Errors: busy, not_found, unsupported (no locks here), io.
  virtual Result<std::unique_ptr<FileLock>> try_lock(std::string_view dir) = 0;
  virtual Result<Bytes> free_space() = 0;
};

// Reads a whole file. Errors as Store::read; does_not_fit if larger than `limit`.
Result<std::vector<std::byte>> read_all(Store& store, std::string_view path,
                                        Bytes limit = Bytes(std::int64_t{1} << 40));
Result<std::string> read_text(Store& store, std::string_view path, Bytes limit = Bytes(std::int64_t{1} << 32));

// Writes `path` atomically, so that it is whole or absent: temporary file, sync, rename, sync_dir.
Status write_whole(Store& store, std::string_view path, std::span<const std::byte> bytes);
Status write_whole(Store& store, std::string_view path, std::string_view text);
// The same of what `write` appends. Errors: also those of `write`, after which there is no new file.
Status write_whole(Store& store, std::string_view path, const std::function<Status(WritableFile&)>& write);

// make_dirs, then makes every name on the path durable.
Status make_dirs_synced(Store& store, std::string_view dir);

// Copies everything under `dir` ("" is the root) to the same names in `to`; makes bytes and names durable.
Status copy_tree(Store& from, Store& to, std::string_view dir = {});

// A store rooted at a folder of this machine; `root` may be absolute or relative to the working folder. Symbolic links
// are followed for reads and for folders on the path, never when creating a file.
// Errors: not_found if `root` is absent, invalid if it is not a folder.
Result<std::unique_ptr<Store>> open_posix_store(std::string root);
// A store in memory, for tests and small data.
std::unique_ptr<Store> make_memory_store();

}  // namespace systole
