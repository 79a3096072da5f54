#pragma once
// TCP sockets by host and port: listening, connecting with a deadline, all of a buffer or an error. Every descriptor is
// closed at exec.

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
  int port = 0;                    // 0: any free one, where one listens
  bool operator==(const NetAddress&) const = default;
};

std::string to_string(const NetAddress& address);  // "10.0.0.1:7000", "[::1]:7000"
// "host:port" or "[host]:port". Errors: invalid.
Result<NetAddress> parse_address(std::string_view text);

// When waiting ends, on the steady clock of this process.
using NetDeadline = std::chrono::steady_clock::time_point;
NetDeadline deadline_after(Seconds duration);
// Until `fd` is ready for `events` of poll(2); false at the deadline.
bool wait_for(int fd, short events, NetDeadline deadline);

struct ListeningSocket {
  Fd fd;  // non-blocking
  int port = 0;
};
// Errors: not_found (no such host), busy (the port is in use), io.
Result<ListeningSocket> listen_on(const NetAddress& address);
// A port that was free a moment ago, for a program that takes a number and binds it itself. Errors: as listen_on.
Result<int> free_port(const std::string& host = "127.0.0.1");

// The address, in digits, from which this machine reaches `peer`: by which that one's network knows it. Nothing is
// sent. Errors: not_found (no such host), io (no way there).
Result<std::string> own_address_towards(const NetAddress& peer);
// Whether only this machine reaches it: 127.0.0.1, ::1, localhost.
bool is_loopback(std::string_view host);

// Tries until the deadline, while nobody listens yet or nobody knows the name: one that starts beside others, as pods
// do, comes before its name. The socket is non-blocking. Errors: not_found (no such host), io.
Result<Fd> connect_to(const NetAddress& address, NetDeadline deadline);

// All of it. Errors: io (closed by the peer, or not done by the deadline; `peer` names it).
Status send_all(int fd, std::span<const std::byte> bytes, NetDeadline deadline, const std::string& peer);
Status receive_all(int fd, std::span<std::byte> bytes, NetDeadline deadline, const std::string& peer);

}  // namespace systole
