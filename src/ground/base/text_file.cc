#include "ground/base/text_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "ground/base/fd.h"
#include "ground/base/os_error.h"

namespace systole {
namespace {

Error cannot_write(int code, const std::string& path) {
  Error why = os_error(code, "write", path);
  if (why.hint.empty()) why.hint = "name a file in a folder that is there and may be written";
  return why;
}

Error too_large(std::string_view name, Bytes limit) {
  return error(ErrorKind::invalid, "'{}' is larger than {}", name, to_string(limit));
}

Result<Fd> open_to_read(const std::string& path, struct stat& info, int flags) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | flags));
  if (fd.get() < 0 && errno == ENOENT) {
    return error(ErrorKind::not_found, "there is no file '{}'", path)
        .hinted(
            path.find("://") != path.npos
                ? "only files of this machine are read here; `systole data stage URL FOLDER` copies those of a bucket"
            : path.starts_with('/') ? "check the name"
                                    : "check the name; it is looked for in the folder the command runs in");
  }
  if (fd.get() < 0 || ::fstat(fd.get(), &info) != 0) return os_read_error(errno, "read", path);
  if (S_ISDIR(info.st_mode)) return error(ErrorKind::invalid, "'{}' is a folder, not a file", path);
  const bool null =
      S_ISCHR(info.st_mode) && info.st_rdev == makedev(1, 3);  // /dev/null, as in KUBECONFIG=/dev/null: an empty file
  if (!S_ISREG(info.st_mode) && !S_ISFIFO(info.st_mode) && !null)
    return error(ErrorKind::invalid, "'{}' is a device, not a file", path);
  return fd;
}

Result<std::string> read_opened(int fd, const struct stat& info, const std::string& path, Bytes limit) {
  if (S_ISREG(info.st_mode) && info.st_size > limit.count()) return too_large(path, limit);
  return read_text_from(fd, path, limit);
}

Error others_read(const std::string& path) {
  return error(ErrorKind::invalid, "'{}' may be read by others than its owner, and holds a secret", path)
      .hinted(fmt::format("chmod 600 {}", path));
}

bool is_private(const struct stat& info) {
  const bool given_by_root = info.st_uid == 0 && ::geteuid() != 0 && (info.st_mode & 037) == 0;
  return (info.st_mode & 077) == 0 || given_by_root;
}

}  // namespace

Result<std::string> read_text_from(int fd, std::string_view name, Bytes limit) {
  constexpr std::size_t kStep = std::size_t{1} << 16;
  const auto most = static_cast<std::size_t>(limit.count());
  std::string text;
  for (;;) {
    const std::size_t before = text.size(), room = std::min(kStep, most + 1 - before);
    text.resize(before + room);
    const ssize_t got = ::read(fd, text.data() + before, room);
    text.resize(before + static_cast<std::size_t>(got > 0 ? got : 0));
    if (got == 0) return text;
    if (got < 0 && errno != EINTR) return os_read_error(errno, "read", std::string(name));
    if (text.size() > most) return too_large(name, limit);
  }
}

Result<std::string> read_text_file(const std::string& path, Bytes limit) {
  struct stat info {};
  const Fd fd = TRY(open_to_read(path, info, 0));
  return read_opened(fd.get(), info, path, limit);
}

// Checks and reads the same open file.
Result<std::string> read_secret_file(const std::string& path, Bytes limit, bool anybody) {
  struct stat info {};
  const Fd fd = TRY(open_to_read(path, info, O_NONBLOCK));  // a pipe without a writer is empty
  if (!anybody && !is_private(info)) return others_read(path);
  ::fcntl(fd.get(), F_SETFL, 0);
  return read_opened(fd.get(), info, path, limit);
}

std::optional<Error> readable_by_others(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || is_private(info)) return {};
  return others_read(path);
}

Status check_writable(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode)) return cannot_write(EISDIR, path);
    return ::access(path.c_str(), W_OK) == 0 ? Status() : cannot_write(errno, path);
  }
  if (errno != ENOENT) return cannot_write(errno, path);
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  return ::access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) == 0 ? Status() : cannot_write(errno, path);
}

Status write_text_file(const std::string& path, std::string_view text) {
  Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (fd.get() < 0) return cannot_write(errno, path);
  while (!text.empty()) {
    const ssize_t done = ::write(fd.get(), text.data(), text.size());
    if (done < 0 && errno != EINTR) return os_error(errno, "write", path);
    if (done > 0) text.remove_prefix(static_cast<std::size_t>(done));
  }
  if (::close(fd.release()) != 0) return os_error(errno, "write", path);
  return {};
}

}  // namespace systole
