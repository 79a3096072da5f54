#include "ground/process/capture.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>

#include "ground/base/fd.h"
#include "ground/base/os_error.h"

namespace systole {
namespace {

constexpr int kMostPieces = 64;  // that are read without a look at the time: 1 MiB, and no pipe holds more
constexpr int kPollMillis = 20;  // maximum delay in noticing the child's end while another process holds its pipes

// Blocks SIGPIPE on this thread and consumes it here: a child may close its input early.
class WithoutSigpipe {
 public:
  WithoutSigpipe() {
    ::sigemptyset(&pipe_);
    ::sigaddset(&pipe_, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~WithoutSigpipe() {
    const timespec now{};
    while (::sigtimedwait(&pipe_, nullptr, &now) < 0 && errno == EINTR) {}
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t pipe_, before_;
};

struct Reader {
  int fd;
  std::string* text;
  bool open = true;
};

// Reads what is available, but for what is written meanwhile: who writes without end holds nobody up. Errors: io.
Status drain(Reader& reader, Bytes limit, bool& truncated) {
  std::array<char, 16384> buffer;
  for (int piece = 0; reader.open && piece < kMostPieces; ++piece) {
    const ssize_t got = ::read(reader.fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return Done{};
    if (got < 0) return os_error(errno, "read from a child process");
    if (got == 0) reader.open = false;
    const auto room = static_cast<std::size_t>(limit.count()) - reader.text->size();
    truncated = truncated || static_cast<std::size_t>(got) > room;
    reader.text->append(buffer.data(), std::min(room, static_cast<std::size_t>(got)));
  }
  return Done{};
}

// Writes as much input as the pipe takes; closes it when all is written or nobody reads.
void feed(Process& process, std::string_view& input) {
  while (process.in() >= 0 && !input.empty()) {
    const ssize_t wrote = ::write(process.in(), input.data(), input.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0 && errno == EAGAIN) return;
    if (wrote < 0) break;
    input.remove_prefix(static_cast<std::size_t>(wrote));
  }
  process.close_in();
}

void make_nonblocking(int fd) { ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK); }

}  // namespace

Result<Captured> run_captured(Command command, const CaptureOptions& options) {
  command.in = options.input.empty() ? ChildStream::null() : ChildStream::pipe();
  command.out = command.err = ChildStream::pipe();
  Process process = TRY(Process::start(command));
  for (int fd : {process.in(), process.out(), process.err()}) {
    if (fd >= 0) make_nonblocking(fd);
  }
  const WithoutSigpipe held;
  // Becomes readable when the child has ended, which may be milliseconds after it closed its pipes. -1, which poll
  // ignores, if the kernel has no pidfd.
  const Fd end(static_cast<int>(::syscall(SYS_pidfd_open, process.pid(), 0)));
  Captured captured;
  std::array<Reader, 2> readers{Reader{process.out(), &captured.out}, Reader{process.err(), &captured.err}};
  std::string_view input = options.input;
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(options.timeout.count());
  // waitid leaves the child a zombie, so its group id is not reused before the group is killed.
  while (!process.has_ended()) {
    feed(process, input);
    for (Reader& reader : readers) TRY(drain(reader, options.limit, captured.truncated));
    if (std::chrono::steady_clock::now() >= until) {
      captured.timed_out = true;
      break;
    }
    std::array<pollfd, 4> waits{pollfd{readers[0].open ? readers[0].fd : -1, POLLIN, 0},
                                pollfd{readers[1].open ? readers[1].fd : -1, POLLIN, 0},
                                pollfd{process.in(), POLLOUT, 0}, pollfd{end.get(), POLLIN, 0}};
    ::poll(waits.data(), waits.size(), kPollMillis);
  }
  (void)process.signal_group(SIGKILL);
  captured.exit = process.wait();
  for (Reader& reader : readers) TRY(drain(reader, options.limit, captured.truncated));
  return captured;
}

}  // namespace systole
