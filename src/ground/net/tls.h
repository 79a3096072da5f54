#pragma once
// TLS between the processes of a run, with nothing but the run's token to begin from: an Ed25519 key is derived of it
// (HKDF-SHA256 with a fixed label), every process makes itself the same self-signed certificate of that key, in memory,
// and each side takes a peer that proves to hold exactly that key. No authority, no names, no dates; the token itself
// is never sent. TLS 1.3 alone, no tickets, no session is resumed. Whoever listens here may ask for the certificate, so
// a token must be drawn (RunToken::make): one that a person made up could be guessed from it.
//
// OpenSSL's libssl is loaded when the first connection over TLS is made; its headers stay in libssl.h and tls.cc.

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "ground/base/result.h"
#include "ground/net/token.h"

namespace systole {

// Key, certificate and terms of one run. Immutable; any thread.
class Tls {
 public:
  // AES-GCM is good for 2^24.5 records of one key (RFC 8446, 5.5); each side takes a new one long before: after 64 GiB.
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

// One connection over a socket that does not block and that outlives it. One thread at a time. Nothing waits.
//
// What send() took has left: no buffer has to be flushed later. Up to four records are encrypted ahead of what the
// socket takes, and count as sent when they have left. OpenSSL itself never waits to write, so that reading goes on
// whatever the peer does. What the peer sent may lie here (holds_bytes), where poll() does not see it; a receive() that
// ends with EAGAIN has taken all of it.
class TlsSession {
 public:
  TlsSession(std::shared_ptr<const Tls> tls, TlsSide side, int fd);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  // As much of the handshake as can be done now; true: it is done. A server only then knows the client, a client may
  // have to hear of its refusal from receive().
  // Errors: invalid (the peer holds another token's key), corrupt (what it says is no TLS), io (it closed).
  Result<bool> shake_hands(const std::string& peer);

  // As recv(2) and sendmsg(2). After -1 with EAGAIN the next send() begins with the same bytes. EPROTO: the peer has
  // broken the protocol, or its bytes were altered on the way.
  ssize_t receive(std::span<std::byte> bytes);
  ssize_t send(std::span<const iovec> runs);
  // The events of poll(2) by which that which has to wait for `events` goes on: a handshake may have more to say.
  short awaits(short events) const;
  bool holds_bytes() const;
  void end();  // tells the peer that nothing more comes, where that can be written now

 private:
  struct State;
  Error refusal(const std::string& peer);
  std::unique_ptr<State> state_;
};

}  // namespace systole
