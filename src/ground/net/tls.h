#pragma once
// TLS between the processes of a run, from the run's token alone. An Ed25519 key is derived from the token (HKDF-SHA256
// with a fixed label). Every process creates the same self-signed certificate of that key, in memory, and accepts only
// a peer that proves to hold exactly that key. There are no authorities, names or dates, and the token itself is not
// sent in the handshake. TLS 1.3 only, without tickets or session resumption. Anybody can obtain the certificate from a
// listener, so a token must be random (RunToken::make): a made-up token could be guessed from it.
//
// OpenSSL's libssl is loaded with the first TLS connection; its headers stay in libssl.h and tls.cc.

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "ground/base/result.h"
#include "ground/net/token.h"

namespace systole {

// Key, certificate and settings of one run. Immutable; any thread.
class Tls {
 public:
  // AES-GCM is safe for 2^24.5 records per key (RFC 8446, 5.5). Each side updates its key long before that: after 64
  // GiB.
  static constexpr std::int64_t kRecordsOfAKey = std::int64_t{1} << 22;
  // Errors: unsupported (no libssl here).
  static Result<std::shared_ptr<const Tls>> of(const RunToken& token, std::int64_t records_of_a_key = kRecordsOfAKey);
  ~Tls();
  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;

 private:
  friend class TlsSession;
  struct State;
  explicit Tls(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

enum class TlsSide { client, server };

// A TLS connection over a non-blocking socket that outlives it. One thread at a time. No call blocks.
//
// Bytes that send() accepted have left; no buffer has to be flushed later. Up to four records are encrypted ahead of
// the socket and count as sent only when they have left. OpenSSL itself never waits to write, so reading continues
// whatever the peer does. Received bytes may be buffered here (holds_bytes), invisible to poll(); a receive() that ends
// with EAGAIN has returned all of them.
class TlsSession {
 public:
  TlsSession(std::shared_ptr<const Tls> tls, TlsSide side, int fd);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  // Advances the handshake as far as possible; true: it is done. Only then does a server know the client; a client may
  // learn of its refusal only from receive().
  // Errors: invalid (the peer has another token's key), corrupt (not TLS), io (the peer closed).
  Result<bool> shake_hands(const std::string& peer);

  // As recv(2) and sendmsg(2). After -1 with EAGAIN the next send() must begin with the same bytes. EPROTO: the peer
  // violated the protocol, or its bytes were altered in transit.
  ssize_t receive(std::span<std::byte> bytes);
  ssize_t send(std::span<const iovec> runs);
  // The poll(2) events to wait for when `events` are wanted: a handshake may also need to write.
  short awaits(short events) const;
  bool holds_bytes() const;
  void end();  // sends close_notify, if it can be written now

 private:
  struct State;
  Error refusal(const std::string& peer);
  std::unique_ptr<State> state_;
};

}  // namespace systole
