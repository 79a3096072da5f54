#include "ground/store/lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "ground/base/os_error.h"

namespace systole {
namespace {

class Flock : public FileLock {
 public:
  explicit Flock(int fd) : fd_(fd) {}
  Flock(const Flock&) = delete;
  Flock& operator=(const Flock&) = delete;
  ~Flock() override { ::close(fd_); }
  int fd() const { return fd_; }

 private:
  int fd_;
};

// The process id that the holder wrote, "" when it has not come to it yet.
std::string pid_of_holder(int fd) {
  std::array<char, 32> text;
  const ssize_t got = ::pread(fd, text.data(), text.size(), 0);
  std::string digits;
  for (ssize_t at = 0; at < got && text[at] >= '0' && text[at] <= '9'; ++at) digits += text[at];
  return digits;
}

// The file of the folder, locked; or the process id of who holds it.
struct Taken {
  std::unique_ptr<Flock> lock;
  std::string holder;
};

// Whether the folder still holds this file: who held it before may have taken both away.
bool is_at(int fd, const std::string& file) {
  struct stat held {
  }, there{};
  return ::fstat(fd, &held) == 0 && ::lstat(file.c_str(), &there) == 0 && held.st_dev == there.st_dev &&
         held.st_ino == there.st_ino;
}

Result<Taken> take(const std::string& path) {
  const std::string file = path + "/lock";
  const int fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (fd < 0) return os_error(errno, "create", file);
  auto lock = std::make_unique<Flock>(fd);
  int taken = ::flock(fd, LOCK_EX | LOCK_NB);
  while (taken != 0 && errno == EINTR) taken = ::flock(fd, LOCK_EX | LOCK_NB);
  if (taken != 0 && errno == EWOULDBLOCK) return Taken{nullptr, pid_of_holder(fd)};
  if (taken != 0) return os_error(errno, "lock", file);
  if (!is_at(fd, file)) return take(path);
  const std::string pid = fmt::format("{}\n", ::getpid());
  if (::ftruncate(fd, 0) != 0 || ::pwrite(fd, pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    return os_error(errno, "write", file);
  }
  return Taken{std::move(lock), {}};
}

std::string process_text(const std::string& pid) { return pid.empty() ? "another process" : "process " + pid; }

}  // namespace

Result<LockAttempt> try_lock_folder(const std::string& path) {
  Taken taken = TRY(take(path));
  if (taken.lock == nullptr) return LockAttempt{nullptr, process_text(taken.holder)};
  return LockAttempt{std::move(taken.lock), {}};
}

Result<std::unique_ptr<FileLock>> lock_folder(const std::string& path) {
  Taken taken = TRY(take(path));
  if (taken.lock != nullptr) return std::unique_ptr<FileLock>(std::move(taken.lock));
  Error busy = error(ErrorKind::busy, "the folder '{}' is in use by {}", path, process_text(taken.holder));
  if (taken.holder.empty()) return busy;
  return std::move(busy).hinted(fmt::format("wait for it, stop it (kill {}), or use another folder", taken.holder));
}

Result<std::unique_ptr<FileLock>> lock_folder(const std::string& path, Seconds patience, Clock& clock) {
  const Seconds until = clock.now() + patience;
  while (true) {
    Result<std::unique_ptr<FileLock>> lock = lock_folder(path);
    if (lock.ok() || lock.error().kind != ErrorKind::busy || clock.now() >= until) return lock;
    clock.sleep(Seconds(0.05));
  }
}

}  // namespace systole
