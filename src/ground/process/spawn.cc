#include "ground/process/spawn.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

#include "ground/base/fd.h"
#include "ground/base/os_error.h"

extern char** environ;

namespace systole {
namespace {

struct Pipe {
  Fd read, write;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return os_error(errno, "make a pipe");
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

// One stream: the child's end, and our end if it is a pipe.
struct Ends {
  Fd child_owned;
  int child = -1;  // -1: inherited
  Fd ours;
};

Result<Ends> open_stream(const ChildStream& stream, bool input) {
  Ends ends;
  if (stream.kind == ChildStream::Kind::inherit) return ends;
  if (stream.kind == ChildStream::Kind::descriptor) {
    ends.child = stream.descriptor;
    return ends;
  }
  if (stream.kind == ChildStream::Kind::pipe) {
    Pipe pipe = TRY(make_pipe());
    ends.child_owned = std::move(input ? pipe.read : pipe.write);
    ends.ours = std::move(input ? pipe.write : pipe.read);
  } else {
    const std::string path = stream.kind == ChildStream::Kind::null ? "/dev/null" : stream.path;
    const int mode = stream.kind == ChildStream::Kind::append ? O_APPEND : O_TRUNC;
    ends.child_owned = Fd(::open(path.c_str(), O_CLOEXEC | (input ? O_RDONLY : O_WRONLY | O_CREAT | mode), 0666));
    if (ends.child_owned.get() < 0) return input ? os_read_error(errno, "open", path) : os_error(errno, "open", path);
  }
  ends.child = ends.child_owned.get();
  return ends;
}

std::vector<std::string> environment_of(const Command& command) {
  std::vector<std::string> variables;
  const auto overridden = [&](std::string_view variable) {
    const std::string_view name = variable.substr(0, variable.find('='));
    return std::any_of(command.env.begin(), command.env.end(), [&](const auto& entry) { return entry.first == name; });
  };
  for (char** variable = environ; !command.clean_env && *variable != nullptr; ++variable) {
    if (!overridden(*variable)) variables.emplace_back(*variable);
  }
  for (const auto& [name, value] : command.env) {
    if (value) variables.push_back(name + "=" + *value);
  }
  return variables;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Everything the child needs, prepared before the fork, because the child must not allocate.
struct Prepared {
  std::string program;
  std::vector<std::string> arguments, variables;
  std::vector<char*> argv, envp;
  std::array<Ends, 3> streams;
  Pipe report;
  pid_t parent = ::getpid();
};

enum class Stage : int { group, parent, announce, streams, folder, limits, exec };

const char* name_of(Stage stage) {
  switch (stage) {
    case Stage::group: return "make a process group for";
    case Stage::parent: return "tie to its parent";
    case Stage::announce: return "announce";
    case Stage::streams: return "redirect the streams of";
    case Stage::folder: return "enter the folder of";
    case Stage::limits: return "limit the resources of";
    case Stage::exec: return "run";
  }
  return "start";
}

[[noreturn]] void report(int fd, Stage stage) {
  const int message[2] = {static_cast<int>(stage), errno};
  // If even this fails, only the exit code is left.
  if (::write(fd, message, sizeof message) < 0) ::_exit(126);
  ::_exit(127);
}

// Sets close-on-exec on all descriptors except the three streams, whoever opened them.
void seal_descriptors() {
  if (::close_range(3, ~0u, CLOSE_RANGE_CLOEXEC) == 0) return;
  const long most = std::clamp(::sysconf(_SC_OPEN_MAX), 256L, 65536L);  // Linux before 5.11
  for (int fd = 3; fd < most; ++fd) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
}

// Runs in the child. Only calls that are safe after fork (signal-safety(7)).
[[noreturn]] void run_child(const Command& command, Prepared& prepared) {
  const int out = prepared.report.write.get();
  if (command.own_group && ::setpgid(0, 0) != 0) report(out, Stage::group);
  if (command.dies_with_parent) {
    if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) report(out, Stage::parent);
    if (::getppid() != prepared.parent) ::_exit(127);  // the parent died before the death signal was set
  }
  if (command.announce >= 0) {
    const pid_t self = ::getpid();
    if (::send(command.announce, &self, sizeof self, MSG_NOSIGNAL) != sizeof self) report(out, Stage::announce);
  }
  for (int number = 1; number < 32; ++number) {
    if (number != SIGKILL && number != SIGSTOP) ::signal(number, SIG_DFL);
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  // Moves descriptors above 2 first, then into place: a stream may name another stream's descriptor.
  int moved[3] = {-1, -1, -1};
  for (int i = 0; i < 3; ++i) {
    if (prepared.streams[i].child < 0) continue;
    moved[i] = ::fcntl(prepared.streams[i].child, F_DUPFD_CLOEXEC, 3);
    if (moved[i] < 0) report(out, Stage::streams);
  }
  for (int i = 0; i < 3; ++i) {
    if (moved[i] >= 0 && ::dup2(moved[i], i) < 0) report(out, Stage::streams);
  }
  if (!command.cwd.empty() && ::chdir(command.cwd.c_str()) != 0) report(out, Stage::folder);
  for (const auto& [resource, most] : command.limits) {
    const rlimit limit{most, most};
    if (::setrlimit(static_cast<decltype(RLIMIT_CORE)>(resource), &limit) != 0) report(out, Stage::limits);
  }
  seal_descriptors();
  ::execve(prepared.program.c_str(), prepared.argv.data(), prepared.envp.data());
  report(out, Stage::exec);
}

Result<Prepared> prepare(const Command& command) {
  CHECK(!command.argv.empty(), "a command without a program");
  Prepared prepared;
  prepared.program = TRY(find_program(command.argv[0]));
  prepared.arguments = command.argv;
  prepared.variables = environment_of(command);
  prepared.argv = pointers_to(prepared.arguments);
  prepared.envp = pointers_to(prepared.variables);
  prepared.streams = {TRY(open_stream(command.in, true)), TRY(open_stream(command.out, false)),
                      TRY(open_stream(command.err, false))};
  prepared.report = TRY(make_pipe());
  return prepared;
}

bool is_program(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && ::access(path.c_str(), X_OK) == 0;
}

}  // namespace

std::string to_string(const Exit& exit) {
  if (exit.signal == 0) return fmt::format("exit code {}", exit.code);
  const char* name = ::sigabbrev_np(exit.signal);
  return name != nullptr ? fmt::format("killed by SIG{}", name) : fmt::format("killed by signal {}", exit.signal);
}

Result<std::string> find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  const char* set = std::getenv("PATH");
  const std::string path = set != nullptr ? set : "/usr/local/bin:/usr/bin:/bin";
  for (std::size_t at = 0; at <= path.size() && !name.empty();) {
    const std::size_t end = std::min(path.find(':', at), path.size());
    const std::string folder = end > at ? path.substr(at, end - at) : ".";
    if (std::string file = folder + "/" + name; is_program(file)) return file;
    at = end + 1;
  }
  return error(ErrorKind::not_found, "no program '{}' in PATH", name).hinted("install it, or give its path");
}

Result<Process> Process::start(const Command& command) {
  Prepared prepared = TRY(prepare(command));
  const pid_t pid = ::fork();
  if (pid < 0) return os_error(errno, "start", command.argv[0]);
  if (pid == 0) run_child(command, prepared);
  Process process;
  process.pid_ = pid;
  process.own_group_ = command.own_group;
  if (command.own_group) ::setpgid(pid, pid);  // here too: a signal may be sent before the child reaches its own call
  prepared.report.write = Fd();
  int message[2];
  ssize_t got = ::read(prepared.report.read.get(), message, sizeof message);
  while (got < 0 && errno == EINTR) got = ::read(prepared.report.read.get(), message, sizeof message);
  if (got == sizeof message) {
    process.wait();
    const auto stage = static_cast<Stage>(message[0]);
    return os_error(message[1], name_of(stage), stage == Stage::folder ? command.cwd : prepared.program);
  }
  for (int i = 0; i < 3; ++i) process.streams_[i] = prepared.streams[i].ours.release();
  return process;
}

Process::Process(Process&& other) noexcept { *this = std::move(other); }

Process& Process::operator=(Process&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(own_group_, other.own_group_);
  std::swap(streams_, other.streams_);
  std::swap(ended_, other.ended_);
  return *this;
}

Process::~Process() {
  if (pid_ > 0 && !ended_) {
    (void)signal_group(SIGKILL);
    wait();
  }
  for (int fd : streams_) {
    if (fd >= 0) ::close(fd);
  }
}

void Process::close_in() {
  if (streams_[0] >= 0) ::close(std::exchange(streams_[0], -1));
}

Status Process::signal(int number) {
  if (ended_ || ::kill(pid_, number) == 0 || errno == ESRCH) return Done{};
  return os_error(errno, fmt::format("signal process {}", pid_));
}

Status Process::signal_group(int number) {
  // Once the child is reaped, its number may be reused by another group.
  if (ended_) return Done{};
  if (::kill(own_group_ ? -pid_ : pid_, number) == 0 || errno == ESRCH) return Done{};
  return os_error(errno, fmt::format("signal the group of process {}", pid_));
}

Exit Process::reap(int status, const ::rusage& usage) {
  const auto seconds = [](const timeval& t) {
    return Seconds(static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec));
  };
  Exit exit;
  exit.code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  exit.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  exit.peak_resident = Bytes(static_cast<std::int64_t>(usage.ru_maxrss)) * 1024;
  exit.user_time = seconds(usage.ru_utime);
  exit.system_time = seconds(usage.ru_stime);
  ended_ = exit;
  return exit;
}

bool Process::has_ended() const {
  if (ended_) return true;
  siginfo_t info{};
  const int got = ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
  CHECK(got == 0 || errno == EINTR, "wait for process {}: {}", pid_, std::strerror(errno));
  return got == 0 && info.si_pid == pid_;
}

std::optional<Exit> Process::poll() {
  if (ended_) return ended_;
  int status = 0;
  struct rusage usage {};
  const pid_t got = ::wait4(pid_, &status, WNOHANG, &usage);
  CHECK(got >= 0 || errno == EINTR, "wait for process {}: {}", pid_, std::strerror(errno));
  if (got != pid_) return std::nullopt;
  return reap(status, usage);
}

Exit Process::wait() {
  if (ended_) return *ended_;
  int status = 0;
  struct rusage usage {};
  pid_t got = ::wait4(pid_, &status, 0, &usage);
  while (got < 0 && errno == EINTR) got = ::wait4(pid_, &status, 0, &usage);
  CHECK(got == pid_, "wait for process {}: {}", pid_, std::strerror(errno));
  return reap(status, usage);
}

std::optional<Exit> Process::wait(Seconds timeout) {
  using std::chrono::steady_clock;
  const auto until = steady_clock::now() + std::chrono::duration<double>(timeout.count());
  std::chrono::microseconds pause(200);
  while (true) {
    if (std::optional<Exit> exit = poll()) return exit;
    if (steady_clock::now() >= until) return std::nullopt;
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(10'000));
  }
}

Exit Process::stop(Seconds grace) {
  (void)signal_group(SIGTERM);
  if (std::optional<Exit> exit = wait(grace)) return *exit;
  (void)signal_group(SIGKILL);
  return wait();
}

}  // namespace systole
