#include "ground/net/stream.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

namespace systole {
namespace {

Error lost(const std::string& peer, const char* why) { return error(ErrorKind::io, "{} {}", peer, why); }

const char* reason_of(int failed) {
  if (failed == EPROTO) return "sent what was altered on the way, or is no TLS";
  return failed == EPIPE || failed == ECONNRESET ? "closed the connection" : "cannot be reached";
}

bool may_wait(int failed) { return failed == EAGAIN || failed == EWOULDBLOCK; }

}  // namespace

NetStream& NetStream::operator=(NetStream&& other) noexcept {
  tls_ = std::move(other.tls_);  // the old session must end before its socket closes
  fd_ = std::move(other.fd_);
  return *this;
}

void NetStream::encrypt(const std::shared_ptr<const Tls>& tls, TlsSide side) {
  if (tls != nullptr) tls_ = std::make_unique<TlsSession>(tls, side, fd_.get());
}

Result<bool> NetStream::shake_hands(const std::string& peer) {
  return tls_ != nullptr ? tls_->shake_hands(peer) : true;
}

ssize_t NetStream::receive(std::span<std::byte> bytes) {
  if (tls_ != nullptr) return tls_->receive(bytes);
  return ::recv(fd_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
}

ssize_t NetStream::send(std::span<const iovec> runs) {
  if (tls_ != nullptr) return tls_->send(runs);
  msghdr sending{};
  sending.msg_iov = const_cast<iovec*>(runs.data());
  sending.msg_iovlen = runs.size();
  return ::sendmsg(fd_.get(), &sending, MSG_NOSIGNAL | MSG_DONTWAIT);
}

ssize_t NetStream::send(std::span<const std::byte> bytes) {
  const iovec run{const_cast<std::byte*>(bytes.data()), bytes.size()};
  return send(std::span(&run, 1));
}

void NetStream::end() {
  if (tls_ != nullptr) tls_->end();
  if (is_open()) ::shutdown(fd_.get(), SHUT_WR);
}

Status shake_hands(NetStream& stream, NetDeadline deadline, const std::string& peer) {
  while (true) {
    if (TRY(stream.shake_hands(peer))) return Done{};
    if (!wait_for(stream.fd(), stream.awaits(POLLIN), deadline)) return lost(peer, "does not answer");
  }
}

Status send_all(NetStream& stream, std::span<const std::byte> bytes, NetDeadline deadline, const std::string& peer) {
  while (!bytes.empty()) {
    const ssize_t sent = stream.send(bytes);
    if (sent > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
    } else if (may_wait(errno)) {
      if (!wait_for(stream.fd(), stream.awaits(POLLOUT), deadline)) return lost(peer, "takes nothing more");
    } else if (errno != EINTR) {
      return lost(peer, reason_of(errno));
    }
  }
  return Done{};
}

Status receive_all(NetStream& stream, std::span<std::byte> bytes, NetDeadline deadline, const std::string& peer) {
  while (!bytes.empty()) {
    const ssize_t got = stream.receive(bytes);
    if (got > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(got));
    } else if (got == 0) {
      return lost(peer, "closed the connection");
    } else if (may_wait(errno)) {
      if (!wait_for(stream.fd(), stream.awaits(POLLIN), deadline)) return lost(peer, "does not answer");
    } else if (errno != EINTR) {
      return lost(peer, reason_of(errno));
    }
  }
  return Done{};
}

}  // namespace systole
