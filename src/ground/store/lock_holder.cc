#include "ground/store/lock_holder.h"

#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <thread>

#include "ground/base/files.h"
#include "ground/base/os_error.h"
#include "ground/base/text_file.h"
#include "ground/store/lock.h"

namespace systole {
namespace {

// Whether the process has the file open; false also if that cannot be seen.
bool has_open(pid_t pid, const struct stat& file) {
  for (const std::filesystem::path& open : paths_in(fmt::format("/proc/{}/fd", pid))) {
    struct stat it {};
    if (::stat(open.c_str(), &it) == 0 && it.st_dev == file.st_dev && it.st_ino == file.st_ino) return true;
  }
  return false;
}

// The number in the lock's file; 0: none yet.
pid_t number_in(const std::string& file) {
  const Result<std::string> text = read_text_file(file, Bytes(64));
  pid_t pid = 0;
  if (text.ok()) std::from_chars(text->data(), text->data() + text->size(), pid);
  return pid;
}

}  // namespace

Result<std::optional<LockHolder>> LockHolder::of(const std::string& path) {
  constexpr int kTries = 10;  // who has just taken the lock has not written its number yet
  const std::string file = path + "/lock";
  pid_t pid = 0;
  for (int i = 0; i < kTries; ++i) {
    if (i > 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (!TRY(is_locked(path))) return std::optional<LockHolder>();
    struct stat lock {};
    pid = number_in(file);
    if (pid <= 0 || ::stat(file.c_str(), &lock) != 0) continue;
    Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    if (process.get() < 0 && errno == ENOSYS)
      return error(ErrorKind::unsupported, "the folder '{}' is in use by process {}, and this system has no pidfd",
                   path, pid)
          .hinted(fmt::format("if it is a systole: kill {}", pid));
    if (process.get() >= 0 && has_open(pid, lock)) return std::optional(LockHolder(pid, std::move(process)));
  }
  return error(ErrorKind::busy, "the folder '{}' is in use by {} that cannot be seen from here", path,
               pid > 0 ? fmt::format("a process {}", pid) : "a process")
      .hinted(pid > 0 ? fmt::format("on its machine, in its container or as its user: kill {}", pid)
                      : "end it where it was started");
}

Status LockHolder::signal(int number) const {
  if (::syscall(SYS_pidfd_send_signal, process_.get(), number, nullptr, 0) == 0 || errno == ESRCH) return {};
  return os_error(errno, "signal", fmt::format("process {}", pid_));
}

bool LockHolder::ends_within(Seconds patience) const {
  using Steady = std::chrono::steady_clock;
  const auto until = Steady::now() + std::chrono::duration_cast<Steady::duration>(
                                         std::chrono::duration<double>(std::min(patience.count(), 1e9)));
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Steady::now()).count();
    pollfd end{process_.get(), POLLIN, 0};
    const int ready = ::poll(&end, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000)));
    if (ready > 0) return true;
    if (ready == 0 && left <= 0) return false;
  }
}

}  // namespace systole
