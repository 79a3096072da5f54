#include "ground/base/text_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

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

}  // namespace

Result<std::string> read_text_file(const std::string& path, Bytes limit) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0 && errno == ENOENT) return error(ErrorKind::not_found, "there is no file '{}'", path);
  if (fd.get() < 0) return os_error(errno, "read", path);
  struct stat info {};
  if (::fstat(fd.get(), &info) == 0 && S_ISDIR(info.st_mode))
    return error(ErrorKind::invalid, "'{}' is a folder, not a file", path);
  constexpr std::size_t kStep = std::size_t{1} << 16;
  std::string text;
  for (;;) {
    const std::size_t before = text.size();
    text.resize(before + kStep);
    const ssize_t got = ::read(fd.get(), text.data() + before, kStep);
    text.resize(before + static_cast<std::size_t>(got > 0 ? got : 0));
    if (got == 0) return text;
    if (got < 0 && errno != EINTR) return os_error(errno, "read", path);
    if (static_cast<std::int64_t>(text.size()) > limit.count())
      return error(ErrorKind::invalid, "'{}' is larger than {}", path, to_string(limit));
  }
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
