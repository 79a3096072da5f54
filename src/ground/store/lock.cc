#include "ground/store/lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "ground/base/fd.h"
#include "ground/base/os_error.h"

namespace systole {

bool try_flock(int fd, int kind) {
  int locked = ::flock(fd, kind | LOCK_NB);
  while (locked != 0 && errno == EINTR) locked = ::flock(fd, kind | LOCK_NB);
  return locked == 0;
}

bool is_still_at(int fd, const std::string& path) {
  struct stat held {
  }, there{};
  return ::fstat(fd, &held) == 0 && ::lstat(path.c_str(), &there) == 0 && held.st_dev == there.st_dev &&
         held.st_ino == there.st_ino;
}

namespace {

class Flock : public FileLock {
 public:
  explicit Flock(Fd fd) : fd_(std::move(fd)) {}

 private:
  Fd fd_;
};

std::string lock_file_of(const std::string& path) { return path + "/lock"; }

// The process id that the holder wrote; "" if it has not written it yet.
std::string pid_of_holder(int fd) {
  std::array<char, 32> text;
  const ssize_t got = ::pread(fd, text.data(), text.size(), 0);
  std::string digits;
  for (ssize_t at = 0; at < got && text[at] >= '0' && text[at] <= '9'; ++at) digits += text[at];
  return digits;
}

// The folder's lock file, locked; or the process id of its holder.
struct Taken {
  std::unique_ptr<Flock> lock;
  std::string holder;
};

Result<Taken> take(const std::string& path) {
  const std::string file = lock_file_of(path);
  Fd fd(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (fd.get() < 0) return os_error(errno, "create", file);
  if (!try_flock(fd.get(), LOCK_EX)) {
    if (errno == EWOULDBLOCK) return Taken{nullptr, pid_of_holder(fd.get())};
    return os_error(errno, "lock", file);
  }
  if (!is_still_at(fd.get(), file)) return take(path);
  const std::string pid = fmt::format("{}\n", ::getpid());
  if (::ftruncate(fd.get(), 0) != 0 ||
      ::pwrite(fd.get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    return os_error(errno, "write", file);
  }
  return Taken{std::make_unique<Flock>(std::move(fd)), {}};
}

std::string process_text(const std::string& pid) { return pid.empty() ? "another process" : "process " + pid; }

Error in_use(const std::string& path, const std::string& pid, std::string_view wait) {
  return error(ErrorKind::busy, "the folder '{}' is in use by {}", path, process_text(pid))
      .hinted(
          fmt::format("{}{}, or use another folder", wait, pid.empty() ? "" : fmt::format(", stop it (kill {})", pid)));
}

}  // namespace

Result<std::unique_ptr<FileLock>> lock_folder(const std::string& path, std::string_view wait) {
  Taken taken = TRY(take(path));
  if (taken.lock == nullptr) return in_use(path, taken.holder, wait);
  return std::unique_ptr<FileLock>(std::move(taken.lock));
}

Result<std::unique_ptr<FileLock>> lock_folder(const std::string& path, Seconds patience, Clock& clock,
                                              const OnHeld& told) {
  const Seconds until = clock.now() + patience;
  while (true) {
    Taken taken = TRY(take(path));
    if (taken.lock != nullptr) return std::unique_ptr<FileLock>(std::move(taken.lock));
    if (told) TRY(told(process_text(taken.holder)));
    if (clock.now() >= until) return in_use(path, taken.holder, "wait for longer");
    clock.sleep(Seconds(0.05));
  }
}

Result<bool> is_locked(const std::string& path) {
  const std::string file = lock_file_of(path);
  const Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (fd.get() < 0 && errno == ENOENT) return false;
  if (fd.get() < 0) return os_read_error(errno, "open", file);
  if (try_flock(fd.get(), LOCK_SH)) return false;
  if (errno == EWOULDBLOCK) return true;
  return os_read_error(errno, "look at", file);
}

}  // namespace systole
