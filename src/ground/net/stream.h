#pragma once
// A connection between processes of a run, plain or over TLS, by calls that do not wait: one loop over poll() or epoll
// serves both kinds. Where TLS has decrypted more than was asked for, poll() does not know of it: a loop that stops
// reading before receive() says EAGAIN asks holds_bytes() before it sleeps.

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
  NetStream() = default;                             // none
  explicit NetStream(Fd fd) : fd_(std::move(fd)) {}  // plain
  NetStream(NetStream&&) noexcept = default;
  NetStream& operator=(NetStream&& other) noexcept;

  int fd() const { return fd_.get(); }
  bool is_open() const { return fd_.get() >= 0; }
  bool is_encrypted() const { return tls_ != nullptr; }

  // From here on over TLS, beginning with the handshake. `tls` null: stays plain.
  void encrypt(const std::shared_ptr<const Tls>& tls, TlsSide side);
  // TlsSession::shake_hands; of a plain one it is done.
  Result<bool> shake_hands(const std::string& peer);

  // As recv(2) and sendmsg(2) without waiting: bytes, 0 at the peer's end (receive), -1 with errno. After EAGAIN the
  // next send begins with the same bytes.
  ssize_t receive(std::span<std::byte> bytes);
  ssize_t send(std::span<const iovec> runs);
  ssize_t send(std::span<const std::byte> bytes);
  short awaits(short events) const { return tls_ != nullptr ? tls_->awaits(events) : events; }
  bool holds_bytes() const { return tls_ != nullptr && tls_->holds_bytes(); }
  // Nothing more is sent; what was sent still arrives, unless bytes of the peer's lie unread when it is closed.
  void end();

 private:
  Fd fd_;
  std::unique_ptr<TlsSession> tls_;  // ends before the socket
};

// The whole handshake. Errors: as TlsSession::shake_hands, io too where it is not done by the deadline.
Status shake_hands(NetStream& stream, NetDeadline deadline, const std::string& peer);
// As for a socket (socket.h).
Status send_all(NetStream& stream, std::span<const std::byte> bytes, NetDeadline deadline, const std::string& peer);
Status receive_all(NetStream& stream, std::span<std::byte> bytes, NetDeadline deadline, const std::string& peer);

}  // namespace systole
