#pragma once
// The free space of a mounted file system, for users without privileges.

#include <sys/statvfs.h>

#include <cerrno>
#include <string>

#include "ground/base/os_error.h"
#include "ground/base/result.h"
#include "ground/base/units.h"

namespace systole {

inline Bytes free_in(const struct statvfs& of) {
  return Bytes(static_cast<std::int64_t>(of.f_bavail) * static_cast<std::int64_t>(of.f_frsize));
}

// Of that in which the folder is. Errors: as os_error.
inline Result<Bytes> free_space_at(const std::string& folder) {
  struct statvfs of {};
  while (::statvfs(folder.c_str(), &of) != 0)
    if (errno != EINTR) return os_error(errno, "ask for the free space of", folder);
  return free_in(of);
}

}  // namespace systole
