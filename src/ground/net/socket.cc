#include "ground/net/socket.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <thread>

#include "ground/base/number_from.h"
#include "ground/base/os_error.h"

namespace systole {
namespace {

using std::chrono::steady_clock;
using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Result<Addresses> resolve(const NetAddress& address, bool listening) {
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_NUMERICSERV | (listening ? AI_PASSIVE : 0);
  addrinfo* found = nullptr;
  const int failed = ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &wanted, &found);
  if (failed == 0) return Addresses(found, &::freeaddrinfo);
  return error(ErrorKind::not_found, "no address of host '{}': {}", address.host, ::gai_strerror(failed))
      .hinted("give a name or an address that this machine can look up");
}

void send_small_at_once(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

// One attempt; returns 0 or an errno.
int connect_once(const addrinfo& to, NetDeadline deadline, Fd& connected) {
  Fd fd(::socket(to.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd.get() < 0) return errno;
  if (::connect(fd.get(), to.ai_addr, to.ai_addrlen) != 0) {
    if (errno != EINPROGRESS) return errno;
    if (!wait_for(fd.get(), POLLOUT, deadline)) return ETIMEDOUT;
    int failed = 0;
    socklen_t size = sizeof failed;
    ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &failed, &size);
    if (failed != 0) return failed;
  }
  send_small_at_once(fd.get());
  connected = std::move(fd);
  return 0;
}

int port_of(int fd) {
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &size);
  return ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(bound).sin6_port
                                           : reinterpret_cast<const sockaddr_in&>(bound).sin_port);
}

Error lost(const std::string& peer, const char* why) { return error(ErrorKind::io, "{} {}", peer, why); }

}  // namespace

std::string to_string(const NetAddress& address) {
  const bool colons = address.host.find(':') != std::string::npos;
  return fmt::format(fmt::runtime(colons ? "[{}]:{}" : "{}:{}"), address.host, address.port);
}

Result<NetAddress> parse_address(std::string_view text) {
  const auto wrong = [&] {
    return error(ErrorKind::invalid, "'{}' is no address", text).hinted("host:port, such as 10.0.0.1:7000");
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) return wrong();
  std::string_view host = text.substr(0, colon), digits = text.substr(colon + 1);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return wrong();
  }
  const int port = number_from<int>(digits).value_or(-1);
  if (port < 0 || port > 65535) return wrong();
  return NetAddress{std::string(host), port};
}

NetDeadline deadline_after(Seconds duration) {
  const double longest = 1e9;  // a duration that does not overflow
  return steady_clock::now() + std::chrono::duration_cast<steady_clock::duration>(
                                   std::chrono::duration<double>(std::clamp(duration.count(), 0.0, longest)));
}

Result<ListeningSocket> listen_on(const NetAddress& address) {
  const Addresses found = TRY(resolve(address, true));
  Fd fd(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd.get() < 0) return os_error(errno, "make a socket");
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);  // ignores closed connections in TIME_WAIT
  if (::bind(fd.get(), found->ai_addr, found->ai_addrlen) != 0 || ::listen(fd.get(), SOMAXCONN) != 0) {
    if (errno != EADDRINUSE) return os_error(errno, "listen on", to_string(address));
    return error(ErrorKind::busy, "port {} of {} is in use", address.port, address.host)
        .hinted("choose another port, or 0 for any free one");
  }
  const int port = port_of(fd.get());
  return ListeningSocket{std::move(fd), port};
}

Result<int> free_port(const std::string& host) {
  const ListeningSocket socket = TRY(listen_on({host, 0}));
  return socket.port;
}

Result<std::string> own_address_towards(const NetAddress& peer) {
  const Addresses found = TRY(resolve(peer, false));
  int failed = 0;
  for (const addrinfo* to = found.get(); to != nullptr; to = to->ai_next) {
    Fd fd(::socket(to->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_storage own{};
    socklen_t size = sizeof own;
    char digits[NI_MAXHOST];
    if (fd.get() >= 0 && ::connect(fd.get(), to->ai_addr, to->ai_addrlen) == 0 &&
        ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&own), &size) == 0 &&
        ::getnameinfo(reinterpret_cast<sockaddr*>(&own), size, digits, sizeof digits, nullptr, 0, NI_NUMERICHOST) == 0)
      return std::string(digits);
    failed = errno;
  }
  return os_error(failed, "find the way to", to_string(peer));
}

bool is_loopback(std::string_view host) {
  in_addr address{};
  const bool v4 = ::inet_pton(AF_INET, std::string(host).c_str(), &address) == 1;
  return (v4 && ntohl(address.s_addr) >> 24 == 127) || host == "::1" || host == "localhost";
}

bool wait_for(int fd, short events, NetDeadline deadline) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - steady_clock::now()).count();
    pollfd one{fd, events, 0};
    const int ready = ::poll(&one, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000)));
    if (ready > 0) return true;
    if (ready == 0 && steady_clock::now() >= deadline) return false;
  }
}

Result<Fd> connect_to(const NetAddress& address, NetDeadline deadline) {
  auto pause = std::chrono::milliseconds(2);
  while (true) {
    const Result<Addresses> found = resolve(address, false);
    if (!found.ok() && found.error().kind != ErrorKind::not_found) return found.error();
    int failed = 0;
    for (const addrinfo* to = found.ok() ? found->get() : nullptr; to != nullptr; to = to->ai_next) {
      Fd fd;
      failed = connect_once(*to, deadline, fd);
      if (failed == 0) return fd;
    }
    constexpr int kMayPass[] = {ECONNREFUSED, ETIMEDOUT, ECONNRESET, EAGAIN, EHOSTUNREACH, ENETUNREACH};
    const bool may_come = !found.ok() || std::ranges::find(kMayPass, failed) != std::end(kMayPass);
    if (!may_come || steady_clock::now() + pause >= deadline)
      return found.ok() ? os_error(failed, "connect to", to_string(address)) : found.error();
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::milliseconds(200));
  }
}

Status send_all(int fd, std::span<const std::byte> bytes, NetDeadline deadline, const std::string& peer) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!wait_for(fd, POLLOUT, deadline)) return lost(peer, "takes nothing more");
    } else if (errno != EINTR) {
      return lost(peer, errno == EPIPE || errno == ECONNRESET ? "closed the connection" : "cannot be reached");
    }
  }
  return Done{};
}

Status receive_all(int fd, std::span<std::byte> bytes, NetDeadline deadline, const std::string& peer) {
  while (!bytes.empty()) {
    const ssize_t got = ::recv(fd, bytes.data(), bytes.size(), 0);
    if (got > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(got));
    } else if (got == 0 || errno == ECONNRESET) {
      return lost(peer, "closed the connection");
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!wait_for(fd, POLLIN, deadline)) return lost(peer, "does not answer");
    } else if (errno != EINTR) {
      return lost(peer, "cannot be reached");
    }
  }
  return Done{};
}

}  // namespace systole
