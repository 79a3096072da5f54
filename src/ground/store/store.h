#pragma once
// Files and objects behind one interface, in the smallest set of acts that a checkpoint needs and that POSIX and
// an object store both have. Paths are relative to the store's root, '/'-separated, without "." or "..".
//
// Durability: bytes are safe after File::sync; a name is safe after sync_dir of its folder. `faulty` (faulty.h)
// forgets what was not made safe, which is how the tests hold the callers to it.
//
// A path that is absolute, empty or contains "." or ".." is refused with kind invalid by every call.
//
// Thread safety: a Store may be used from several threads; a WritableFile by one at a time.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/result.h"
#include "ground/base/units.h"

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
  // A file or an empty folder; fine if absent. Errors: exists when the folder is not empty.
  virtual Status remove(std::string_view path) = 0;
  virtual Status sync_dir(std::string_view dir) = 0;
  virtual Result<Bytes> free_space() = 0;
};

// A file read whole. Errors as Store::read; does_not_fit when larger than `limit`.
Result<std::vector<std::byte>> read_all(Store& store, std::string_view path,
                                        Bytes limit = Bytes(std::int64_t{1} << 40));
Result<std::string> read_text(Store& store, std::string_view path, Bytes limit = Bytes(std::int64_t{1} << 32));

// Writes `path` so that it is whole or absent: temporary file, sync, rename, sync_dir.
Status write_whole(Store& store, std::string_view path, std::span<const std::byte> bytes);
Status write_whole(Store& store, std::string_view path, std::string_view text);

// make_dirs, and every name on the way made safe.
Status make_dirs_synced(Store& store, std::string_view dir);

// Copies all that stands under `dir` ("" is everything) to the same names in `to`, bytes and names made safe.
Status copy_tree(Store& from, Store& to, std::string_view dir = {});

// A store rooted at a folder of this machine; `root` may be absolute or relative to the working folder. Symbolic links
// are followed when reading and as folders on the way, never when creating a file.
// Errors: not_found when `root` is absent, invalid when it is no folder.
Result<std::unique_ptr<Store>> open_posix_store(std::string root);
// A store in memory, for tests and small data.
std::unique_ptr<Store> make_memory_store();

}  // namespace systole
