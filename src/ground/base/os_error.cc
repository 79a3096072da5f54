#include "ground/base/os_error.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

namespace systole {
namespace {

ErrorKind kind_of(int number) {
  switch (number) {
    case ENOENT:
    case ENOTDIR: return ErrorKind::not_found;
    case ENOSPC:
    case EDQUOT: return ErrorKind::no_space;
    case EEXIST:
    case ENOTEMPTY: return ErrorKind::exists;
    case EWOULDBLOCK: return ErrorKind::busy;
    case ENAMETOOLONG: return ErrorKind::invalid;
    default: return ErrorKind::io;
  }
}

bool only_reads(std::string_view doing) {
  constexpr std::array<std::string_view, 5> kReads{"read", "list", "look at", "open", "open the folder"};
  return std::ranges::find(kReads, doing) != kReads.end();
}

std::string hint_of(int number, std::string_view doing, std::string_view path) {
  switch (number) {
    case EACCES:
    case EPERM:
      if (only_reads(doing))
        return fmt::format("let this user read it, and enter the folders above it: chmod u+rX '{}'", path);
      return fmt::format("choose a folder that this user may write, or give permission: chmod u+rwX '{}'", path);
    case EROFS: return "the file system is mounted read-only: choose another folder";
    case ENOSPC: return "free space on this disk (df -h shows it) or choose a folder on another one";
    case EFBIG: return "files of this process may be no larger: raise the limit (ulimit -f shows it)";
    case EDQUOT: return "this user's disk quota is used up: remove files or choose another disk";
    case ELOOP: return "it is a symbolic link, which is not written through: give the file itself";
    case EMFILE: return "this process has too many open files: raise the limit (ulimit -n)";
    default: return {};
  }
}

}  // namespace

Error os_error(int number, std::string_view doing, std::string_view path) {
  const std::string why = std::generic_category().message(number);
  Error made = path.empty() ? error(kind_of(number), "cannot {}: {}", doing, why)
                            : error(kind_of(number), "cannot {} '{}': {}", doing, path, why);
  made.hint = hint_of(number, doing, path);
  return made;
}

}  // namespace systole
