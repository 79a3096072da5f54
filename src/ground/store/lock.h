#pragma once
// One process at a time in a folder: flock on the file `lock` in it, which the system gives back when the holder dies,
// whatever killed it. The file holds the holder's process id for the message to the second one, and stays.

#include <memory>
#include <string>

#include "ground/base/clock.h"
#include "ground/base/result.h"

namespace systole {

class FileLock {
 public:
  virtual ~FileLock() = default;  // gives the lock back
};

// Locks the folder `path` of this machine until the lock is destroyed. Does not wait. A child process started with
// exec does not inherit it.
// Errors: busy (held by another FileLock, of any process; the message says which), not_found, io.
Result<std::unique_ptr<FileLock>> lock_folder(const std::string& path);

// Waits for it, so long at most.
Result<std::unique_ptr<FileLock>> lock_folder(const std::string& path, Seconds patience, Clock& clock);

// The same for who waits in another way: the lock, or null and who holds it, as "process 12". Errors: not_found, io.
struct LockAttempt {
  std::unique_ptr<FileLock> lock;
  std::string holder;
};
Result<LockAttempt> try_lock_folder(const std::string& path);

}  // namespace systole
