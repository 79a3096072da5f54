#include "operate/launch/orphan_guard.h"

#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <utility>

#include "ground/base/os_error.h"

namespace systole {
namespace {

constexpr int kMostGroups = 65'536;

// Closes everything but `keep`: the guard must not hold a socket or a lock of the agent.
void close_all_but(int keep) {
  const auto close_from_to = [](unsigned first, unsigned last) {
    if (first > last) return;
    if (::close_range(first, last, 0) == 0) return;
    for (unsigned fd = first; fd <= last && fd < 65'536; ++fd) ::close(static_cast<int>(fd));
  };
  close_from_to(0, static_cast<unsigned>(keep) - 1);
  close_from_to(static_cast<unsigned>(keep) + 1, ~0u);
}

// Main loop of the guard. Uses static memory: nothing may be allocated after a fork of a threaded process.
[[noreturn]] void keep_watch(int socket) {
  static pid_t groups[kMostGroups];
  int known = 0;
  ::setpgid(0, 0);  // not reached by the terminal's Ctrl-C
  ::prctl(PR_SET_NAME, "systole-guard");
  for (int number = 1; number < 32; ++number) {
    if (number != SIGKILL && number != SIGSTOP) ::signal(number, number == SIGCHLD ? SIG_DFL : SIG_IGN);
  }
  close_all_but(socket);
  pid_t message = 0;
  while (true) {
    const ssize_t got = ::recv(socket, &message, sizeof message, MSG_WAITALL);
    if (got < 0 && errno == EINTR) continue;
    if (got != static_cast<ssize_t>(sizeof message)) break;
    if (message > 1 && known < kMostGroups) groups[known++] = message;
    for (int i = 0; message < 0 && i < known; ++i) {
      if (groups[i] == -message) {
        groups[i] = groups[--known];
        break;
      }
    }
  }
  for (int i = 0; i < known; ++i) ::kill(-groups[i], SIGKILL);
  ::_exit(0);
}

}  // namespace

Result<OrphanGuard> OrphanGuard::start() {
  OrphanGuard guard;
  TRY(guard.revive({}));
  return guard;
}

Status OrphanGuard::revive(const std::vector<pid_t>& groups) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return os_error(errno, "make a socket");
  Fd ours(ends[0]), theirs(ends[1]);
  const pid_t pid = ::fork();
  if (pid < 0) return os_error(errno, "start a guard");
  if (pid == 0) keep_watch(theirs.get());
  socket_ = std::move(ours);
  pid_ = pid;
  for (const pid_t group : groups) (void)!::send(socket_.get(), &group, sizeof group, MSG_NOSIGNAL);
  return Done{};
}

OrphanGuard::OrphanGuard(OrphanGuard&& other) noexcept { *this = std::move(other); }

OrphanGuard& OrphanGuard::operator=(OrphanGuard&& other) noexcept {
  socket_ = std::move(other.socket_);
  std::swap(pid_, other.pid_);
  return *this;
}

OrphanGuard::~OrphanGuard() {
  socket_ = Fd();  // the guard sees the end of file, kills what it knows, and exits
  if (pid_ > 0) {
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {}
  }
}

void OrphanGuard::forget(pid_t group) {
  const pid_t message = -group;
  (void)!::send(socket_.get(), &message, sizeof message, MSG_NOSIGNAL);
}

bool OrphanGuard::alive() {
  if (pid_ <= 0) return false;
  if (::waitpid(pid_, nullptr, WNOHANG) != pid_) return true;
  pid_ = -1;
  return false;
}

}  // namespace systole
