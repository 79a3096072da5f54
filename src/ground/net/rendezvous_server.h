#pragma once
// The rendezvous as a TCP server: one thread, epoll, bounded memory. Whoever does not show the run's token within
// `hello_time` is closed and gets no byte back; a frame that is begun must come, and a reply be taken, within
// `frame_time`. Of strangers at most `strangers` are held at once, the oldest makes room for the newest, so that ten
// thousand of them keep nobody out. With `tls` the handshake stands before all of that, within `hello_time`: a stranger
// then gets the certificate of the run's key, and nothing after it.

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
  bool tls = false;  // one that shows the token without it is told so, and nothing else is answered
};

class RendezvousServer {
 public:
  // Listens when it returns. Errors: not_found (no such host), busy (the port is in use), io, unsupported (no libssl).
  static Result<std::unique_ptr<RendezvousServer>> start(const RunToken& token, RendezvousServerOptions options = {});
  ~RendezvousServer();  // closes every connection
  RendezvousServer(const RendezvousServer&) = delete;
  RendezvousServer& operator=(const RendezvousServer&) = delete;

  NetAddress address() const { return address_; }                   // with the port that it got
  std::int64_t turned_away() const { return turned_away_.load(); }  // connections that never showed the token
  std::size_t waiting() const { return waiting_.load(); }           // requests that are not answered yet

 private:
  class Loop;
  RendezvousServer() = default;

  NetAddress address_;
  Fd wake_;  // an eventfd: written to end the thread
  std::atomic<std::int64_t> turned_away_{0};
  std::atomic<std::size_t> waiting_{0};
  std::unique_ptr<Loop> loop_;
  std::thread thread_;
};

}  // namespace systole
