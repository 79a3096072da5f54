#pragma once
// The process that holds the lock of a folder (lock.h), to ask it to end. Its number stands in the lock's file, and may
// since be another process's: it is believed only of a process that has this file open. That process is then held by
// its pidfd, so a signal can reach no other.

#include <sys/types.h>

#include <optional>
#include <string>

#include "ground/base/fd.h"
#include "ground/base/result.h"
#include "ground/base/units.h"

namespace systole {

class LockHolder {
 public:
  // Nothing: nobody holds the lock of the folder `path`. Errors: those of is_locked; busy: the holder is no process that
  // can be seen from here (of another machine, container or user); unsupported: this kernel has no pidfd.
  static Result<std::optional<LockHolder>> of(const std::string& path);

  pid_t pid() const { return pid_; }
  // Fine if it has ended. Errors: io, as when it is another user's.
  Status signal(int number) const;
  // Whether it ends within so long.
  bool ends_within(Seconds patience) const;

 private:
  LockHolder(pid_t pid, Fd process) : pid_(pid), process_(std::move(process)) {}

  pid_t pid_;
  Fd process_;
};

}  // namespace systole
