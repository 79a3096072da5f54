#include "ground/base/os_error.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>

#include "ground/base/shell_quoted.h"

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

enum class Access { read, write };

std::filesystem::path above(const std::filesystem::path& path) {
  const std::filesystem::path folder = path.parent_path();
  return folder.empty() ? std::filesystem::path(".") : folder;
}

// What denies access: the deepest part of `path` that this user can stat, or its parent if that part itself grants all
// of `wanted`. Empty: neither denies.
std::string refusing(const std::filesystem::path& path, int wanted) {
  std::filesystem::path at = path;
  struct stat info {};
  while (::stat(at.c_str(), &info) != 0 && at != above(at)) at = above(at);
  for (const std::filesystem::path& one : {at, above(at)}) {
    const bool folder = ::stat(one.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
    if (::faccessat(AT_FDCWD, one.c_str(), folder ? wanted | X_OK : wanted, AT_EACCESS) != 0) return one.string();
  }
  return {};
}

std::string name_of_user(uid_t user) {
  std::array<char, 4096> space{};
  struct passwd entry {};
  struct passwd* found = nullptr;
  const bool known = ::getpwuid_r(user, &entry, space.data(), space.size(), &found) == 0 && found != nullptr;
  return known ? found->pw_name : std::to_string(user);
}

// Only the owner can change a mode.
std::string permission_hint(Access access, std::string_view path) {
  const bool reads = access == Access::read;
  const std::string what = path.empty() ? "" : refusing(path, reads ? R_OK : W_OK);
  struct stat info {};
  if (what.empty() || ::stat(what.c_str(), &info) != 0) return {};
  const std::string lead =
      reads ? "let this user read it" : "choose a folder that this user may write, or give permission";
  if (info.st_uid == ::geteuid())
    return fmt::format("{}: chmod u+{} {}", lead, reads ? "rX" : "rwX", shell_quoted(what));
  return fmt::format("{}'{}' refuses: ask its owner ({}) for it",
                     reads ? "" : "choose a folder that this user may write; ", what, name_of_user(info.st_uid));
}

std::string hint_of(int number, Access access, std::string_view path) {
  switch (number) {
    case EACCES:
    case EPERM: return permission_hint(access, path);
    case EROFS: return "the file system is mounted read-only: choose another folder";
    case ENOSPC: return "free space on this disk (df -h shows it) or choose a folder on another one";
    case EFBIG: return "files of this process may be no larger: raise the limit (ulimit -f shows it)";
    case EDQUOT: return "this user's disk quota is used up: remove files or choose another disk";
    case ELOOP: return "it is a symbolic link, which is not written through: give the file itself";
    case EMFILE: return "this process has too many open files: raise the limit (ulimit -n)";
    default: return {};
  }
}

Error refused(int number, Access access, std::string_view doing, std::string_view path) {
  const std::string why = std::generic_category().message(number);
  Error made = path.empty() ? error(kind_of(number), "cannot {}: {}", doing, why)
                            : error(kind_of(number), "cannot {} '{}': {}", doing, path, why);
  made.hint = hint_of(number, access, path);
  return made;
}

}  // namespace

Error os_error(int number, std::string_view doing, std::string_view path) {
  return refused(number, Access::write, doing, path);
}

Error os_read_error(int number, std::string_view doing, std::string_view path) {
  return refused(number, Access::read, doing, path);
}

}  // namespace systole
