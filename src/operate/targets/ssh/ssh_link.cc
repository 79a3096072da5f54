#include "operate/targets/ssh/ssh_link.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>

#include "ground/base/os_error.h"

namespace systole {
namespace {

constexpr std::size_t kMostAtOnce = 32;
constexpr std::size_t kMostLine = 64 << 10;  // bytes of an answer, and of an error message
constexpr int kNoConnection = 255;           // exit code of ssh(1)

// The remote command reads the script from stdin, by its length, and runs it: a script may be too long for an argument,
// and quoting depends on the login shell.
std::string reading(const std::string& script) {
  return fmt::format("exec sh -c 'eval \"$(head -c {})\"'", script.size());
}

Error silent(const SshHost& host, const std::string& why) {
  return error(ErrorKind::io, "{} does not answer: {}", host.name, why)
      .hinted(fmt::format("ssh -o BatchMode=yes {}{} true", host.port == "-" ? "" : fmt::format("-p {} ", host.port),
                          host.login));
}

}  // namespace

std::vector<std::string> ssh_words(const SshHost& host, bool terminal, const std::string& line) {
  std::vector<std::string> words = {"ssh",
                                    "-o",
                                    "BatchMode=yes",
                                    "-o",
                                    "ConnectTimeout=10",
                                    "-o",
                                    "ServerAliveInterval=5",
                                    "-o",
                                    "ServerAliveCountMax=3"};
  if (terminal) words.emplace_back("-t");
  if (host.port != "-") words.insert(words.end(), {"-p", host.port});
  words.insert(words.end(), {"--", host.login, line});
  return words;
}

Result<std::string> ask_host(const SshHost& host, const std::string& script, Bytes limit) {
  Command command;
  command.argv = ssh_words(host, false, reading(script));
  CaptureOptions options;
  options.input = script;
  options.limit = limit;
  options.timeout = kHostPatience;
  Captured said = TRY(run_captured(std::move(command), options));
  if (said.timed_out) return silent(host, fmt::format("nothing came in {:.0f} seconds", kHostPatience.count()));
  if (said.exit.code == kNoConnection || said.exit.signal != 0) return silent(host, ssh_failure(said.err));
  if (said.exit.code != 0) return error(ErrorKind::invalid, "{}: {}", host.name, ssh_failure(said.err));
  return std::move(said.out);
}

Result<HostSession> HostSession::open(const SshHost& host, const std::string& script) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return os_error(errno, "make a pair of sockets");
  Fd ours(ends[0]), its(ends[1]);
  Command command;
  command.argv = ssh_words(host, false, reading(script));
  command.in = command.out = ChildStream::to(its.get());
  command.err = ChildStream::pipe();
  HostSession talk(host, std::move(ours), TRY(Process::start(command)));
  TRY(talk.say(script));
  return talk;
}

HostSession::~HostSession() {
  if (ours_.get() < 0) return;  // moved from
  ::shutdown(ours_.get(), SHUT_WR);
  process_->wait(Seconds(10.0));
}

Status HostSession::say(std::string_view bytes) {
  while (!bytes.empty()) {
    pollfd ready{ours_.get(), POLLOUT, 0};
    if (::poll(&ready, 1, static_cast<int>(kHostPatience.count() * 1000)) <= 0) return gone();
    const ssize_t sent = ::send(ours_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (sent < 0) return gone();
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return {};
}

Status HostSession::send_file(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return os_read_error(errno, "open", path);
  std::array<char, 1 << 16> buffer;
  while (true) {
    const ssize_t got = ::read(file.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return os_read_error(errno, "read", path);
    if (got == 0) return {};
    TRY(say({buffer.data(), static_cast<std::size_t>(got)}));
  }
}

Result<std::string> HostSession::hear(Seconds patience) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(patience.count());
  while (true) {
    if (const std::size_t newline = heard_.find('\n'); newline != heard_.npos) {
      std::string line = heard_.substr(0, newline);
      heard_.erase(0, newline + 1);
      return line;
    }
    if (heard_.size() > kMostLine)
      return error(ErrorKind::invalid, "{} answers with a line of more than {} KiB: it is no machine as it should be",
                   host_.name, kMostLine >> 10)
          .hinted("look at what its login's start files print");
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    if (left.count() <= 0) return silent(host_, fmt::format("nothing came in {:.0f} seconds", patience.count()));
    pollfd ready{ours_.get(), POLLIN, 0};
    if (::poll(&ready, 1, static_cast<int>(left.count())) <= 0) continue;
    std::array<char, 4096> buffer;
    const ssize_t got = ::recv(ours_.get(), buffer.data(), buffer.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return gone();
    heard_.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

Result<std::string> HostSession::ask(const std::string& line, Seconds patience) {
  TRY(say(line + "\n"));
  return hear(patience);
}

Error HostSession::gone() {
  ::shutdown(ours_.get(), SHUT_RDWR);
  std::string err;
  if (process_->wait(Seconds(5.0))) {
    std::array<char, 4096> buffer;
    ::fcntl(process_->err(), F_SETFL, O_NONBLOCK);
    for (ssize_t got; err.size() < kMostLine && (got = ::read(process_->err(), buffer.data(), buffer.size())) > 0;)
      err.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return silent(host_, ssh_failure(err));
}

void for_each_at_once(std::size_t n, const std::function<void(std::size_t)>& act) {
  if (n == 1) return act(0);
  std::atomic<std::size_t> next{0};
  std::vector<std::jthread> threads;
  for (std::size_t t = 0; t < std::min(n, kMostAtOnce); ++t)
    threads.emplace_back([&] {
      for (std::size_t i; (i = next++) < n;) act(i);
    });
}

}  // namespace systole
