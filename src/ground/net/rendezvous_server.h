#pragma once
// The rendezvous as a TCP server: one thread, epoll, bounded memory. A connection that does not send the run's token
// within `hello_time` is closed without a reply byte. Each frame must arrive, and each reply must be received, within
// `frame_time`. At most `strangers` connections without the token are held; the newest evicts the oldest, so ten
// thousand of them lock nobody out. With `tls` the handshake comes first, within `hello_time`; a stranger then sees the
// certificate of the run's key, and nothing else.

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>

#include "ground/base/clock.h"
#include "ground/base/result.h"
#include "ground/net/rendezvous_state.h"
#include "ground/net/stream.h"
#include "ground/net/token.h"

namespace systole {

struct RendezvousServerOptions {
  NetAddress bind = {};  // loopback, any free port
  RendezvousLimits limits = {};
  std::size_t clients = 4096, strangers = 128;
  Seconds hello_time = Seconds(2.0), frame_time = Seconds(10.0);
  bool tls = false;  // a client that sends the token without TLS is told so; it gets no other answer
};

class RendezvousServer {
 public:
  // Returns when it is listening. Errors: not_found (no such host), busy (the port is in use), io, unsupported (no
  // libssl).
  static Result<std::unique_ptr<RendezvousServer>> start(const RunToken& token, RendezvousServerOptions options = {});
  ~RendezvousServer();  // closes every connection
  RendezvousServer(const RendezvousServer&) = delete;
  RendezvousServer& operator=(const RendezvousServer&) = delete;

  NetAddress address() const { return address_; }                   // with the actual port
  std::int64_t turned_away() const { return turned_away_.load(); }  // connections that closed without the token
  std::size_t waiting() const { return waiting_.load(); }           // requests not answered yet

 private:
  class Loop;
  RendezvousServer() = default;

  NetAddress address_;
  Fd wake_;  // an eventfd; a write ends the thread
  std::atomic<std::int64_t> turned_away_{0};
  std::atomic<std::size_t> waiting_{0};
  std::unique_ptr<Loop> loop_;
  std::thread thread_;
};

}  // namespace systole
