#pragma once
// A connection between processes of a run, plain or over TLS, with non-blocking calls: one loop over poll() or epoll
// serves both kinds. poll() does not see bytes that TLS has already decrypted. So a loop that stops reading before
// receive() returns EAGAIN must call holds_bytes() before it sleeps.

#include <sys/uio.h>

#include <memory>
#include <span>
#include <string>

#include "ground/base/fd.h"
#include "ground/net/socket.h"
#include "ground/net/tls.h"

namespace systole {

class NetStream {
 public:
  NetStream() = default;                             // no connection
  explicit NetStream(Fd fd) : fd_(std::move(fd)) {}  // plain
  NetStream(NetStream&&) noexcept = default;
  NetStream& operator=(NetStream&& other) noexcept;

  int fd() const { return fd_.get(); }
  bool is_open() const { return fd_.get() >= 0; }
  bool is_encrypted() const { return tls_ != nullptr; }

  // Switches to TLS, starting with the handshake. `tls` null: stays plain.
  void encrypt(const std::shared_ptr<const Tls>& tls, TlsSide side);
  // TlsSession::shake_hands; on a plain stream it is done at once.
  Result<bool> shake_hands(const std::string& peer);

  // Like non-blocking recv(2) and sendmsg(2): bytes, 0 at the peer's end (receive), -1 with errno. After EAGAIN the
  // next send must begin with the same bytes.
  ssize_t receive(std::span<std::byte> bytes);
  ssize_t send(std::span<const iovec> runs);
  ssize_t send(std::span<const std::byte> bytes);
  short awaits(short events) const { return tls_ != nullptr ? tls_->awaits(events) : events; }
  bool holds_bytes() const { return tls_ != nullptr && tls_->holds_bytes(); }
  // Ends sending. Bytes already sent still arrive, unless unread bytes of the peer remain at close.
  void end();

 private:
  Fd fd_;
  std::unique_ptr<TlsSession> tls_;  // destroyed before the socket
};

// The whole handshake. Errors: as TlsSession::shake_hands; io also if not done by the deadline.
Status shake_hands(NetStream& stream, NetDeadline deadline, const std::string& peer);
// As for a socket (socket.h).
Status send_all(NetStream& stream, std::span<const std::byte> bytes, NetDeadline deadline, const std::string& peer);
Status receive_all(NetStream& stream, std::span<std::byte> bytes, NetDeadline deadline, const std::string& peer);

}  // namespace systole
