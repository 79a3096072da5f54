#pragma once
// TCP sockets by host and port: listen, connect with a deadline, send or receive a whole buffer. Every descriptor is
// close-on-exec.

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "ground/base/fd.h"
#include "ground/base/result.h"
#include "ground/base/units.h"

namespace systole {

struct NetAddress {
  std::string host = "127.0.0.1";  // a name or an address
  int port = 0;                    // 0: any free port, when listening
  bool operator==(const NetAddress&) const = default;
};

std::string to_string(const NetAddress& address);  // "10.0.0.1:7000", "[::1]:7000"
// "host:port" or "[host]:port". Errors: invalid.
Result<NetAddress> parse_address(std::string_view text);

// The end of a wait, on the steady clock of this process.
using NetDeadline = std::chrono::steady_clock::time_point;
NetDeadline deadline_after(Seconds duration);
// Waits until `fd` is ready for `events` of poll(2); false at the deadline.
bool wait_for(int fd, short events, NetDeadline deadline);

struct ListeningSocket {
  Fd fd;  // non-blocking
  int port = 0;
};
// Errors: not_found (no such host), busy (the port is in use), io.
Result<ListeningSocket> listen_on(const NetAddress& address);
// A port that was free a moment ago, for a program that binds a given port itself. Errors: as listen_on.
Result<int> free_port(const std::string& host = "127.0.0.1");

// The numeric address from which this machine reaches `peer`, that is, its address in that network. Sends nothing.
// Errors: not_found (no such host), io (no route).
Result<std::string> own_address_towards(const NetAddress& peer);
// Whether the host is reachable only from this machine: 127.0.0.1, ::1, localhost.
bool is_loopback(std::string_view host);

// Retries until the deadline while there is no listener or the name is unknown: a pod may start before its peers' names
// resolve. The socket is non-blocking. Errors: not_found (no such host), io.
Result<Fd> connect_to(const NetAddress& address, NetDeadline deadline);

// Sends or receives all bytes. Errors: io (closed by the peer, or not done by the deadline; `peer` names it).
Status send_all(int fd, std::span<const std::byte> bytes, NetDeadline deadline, const std::string& peer);
Status receive_all(int fd, std::span<std::byte> bytes, NetDeadline deadline, const std::string& peer);

}  // namespace systole
