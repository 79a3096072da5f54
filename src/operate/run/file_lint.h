#pragma once
// Warnings about the files that a workload names, as they are on this machine: thousands of tiny ones, one that nothing
// can share, and folders on file systems that are not a disk's.

#include <optional>
#include <vector>

#include "describe/spec/workload.h"
#include "ground/store/mount_kind.h"
#include "operate/check/lint.h"

namespace systole {

// REQUIRES: the files exist. What cannot be looked at is left out.
std::vector<Lint> file_lint(const Workload& workload);

// Of so many files, with so many bytes in all, on such a file system.
std::vector<Lint> size_lint(std::int64_t files, Bytes bytes, MountKind mount);
// Of the folder of a key, on such a file system.
std::vector<Lint> mount_lint(const std::string& key, MountKind mount);

// Of data.cache: nothing of this text is kept there, or /dev/shm has less room than data.cache.memory.
std::optional<Lint> cache_lint(const Workload& workload);
// The same as a warning.
std::optional<Error> cache_warning(const Workload& workload);

}  // namespace systole
