#include "ground/store/lock.h"

#include <fcntl.h>
#include <sys/file.h>
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
std::string holder_of(int fd) {
  std::array<char, 32> text;
  const ssize_t got = ::pread(fd, text.data(), text.size(), 0);
  std::string digits;
  for (ssize_t at = 0; at < got && text[at] >= '0' && text[at] <= '9'; ++at) digits += text[at];
  return digits;
}

Error busy(const std::string& path, const std::string& holder) {
  if (holder.empty()) return error(ErrorKind::busy, "the folder '{}' is in use by another process", path);
  return error(ErrorKind::busy, "the folder '{}' is in use by process {}", path, holder)
      .hinted(fmt::format("wait for it, stop it (kill {}), or use another folder", holder));
}

}  // namespace

Result<std::unique_ptr<FileLock>> lock_folder(const std::string& path) {
  const std::string file = path + "/lock";
  const int fd = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (fd < 0) return os_error(errno, "create", file);
  auto lock = std::make_unique<Flock>(fd);
  int taken = ::flock(fd, LOCK_EX | LOCK_NB);
  while (taken != 0 && errno == EINTR) taken = ::flock(fd, LOCK_EX | LOCK_NB);
  if (taken != 0 && errno == EWOULDBLOCK) return busy(path, holder_of(fd));
  if (taken != 0) return os_error(errno, "lock", file);
  const std::string pid = fmt::format("{}\n", ::getpid());
  if (::ftruncate(fd, 0) != 0 || ::pwrite(fd, pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    return os_error(errno, "write", file);
  }
  return std::unique_ptr<FileLock>(std::move(lock));
}

}  // namespace systole
