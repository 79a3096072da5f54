#pragma once
// A folder lock between processes: flock on the file `lock` in the folder. The system releases it when the holder dies,
// for whatever reason. The file stays, and holds the holder's process id for error messages.

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "ground/base/clock.h"
#include "ground/base/result.h"

namespace systole {

// flock without waiting; closing the file releases it. `kind`: LOCK_EX or LOCK_SH. Sets errno on false; EWOULDBLOCK:
// another open file excludes it.
bool try_flock(int fd, int kind);
// Whether the name still refers to the open file: an earlier holder may have removed or renamed it.
bool is_still_at(int fd, const std::string& path);

class FileLock {
 public:
  virtual ~FileLock() = default;  // releases the lock
};

// Locks the folder `path` of this machine until the lock is destroyed. Does not wait. A child process started with exec
// does not inherit it. `wait`: how the caller can wait instead, for the hint.
// Errors: busy (held by another FileLock, of any process; the message says which), not_found, io.
Result<std::unique_ptr<FileLock>> lock_folder(const std::string& path, std::string_view wait = "wait for it");

// Waits for the lock, at most `patience`. Each time it is held, calls `told` with the holder, as "process 12"; an error
// that `told` returns ends the wait. Errors: those too.
using OnHeld = std::function<Status(const std::string& holder)>;
Result<std::unique_ptr<FileLock>> lock_folder(const std::string& path, Seconds patience, Clock& clock,
                                              const OnHeld& told = {});

// Whether a process holds the lock of the folder, without taking it: creates and writes no file. False also if the
// folder was never locked or does not exist. A process that takes the lock at this very moment may be told that another
// one holds it. Errors: io, the lock file cannot be opened.
Result<bool> is_locked(const std::string& path);

}  // namespace systole
