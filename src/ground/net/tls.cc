#include "ground/net/tls.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "ground/base/late_library.h"

namespace systole {
namespace {

constexpr std::string_view kLabel = "systole run, TLS, Ed25519, 1";  // another one makes another key of a token
constexpr std::size_t kRecord = SSL3_RT_MAX_PLAIN_LENGTH;            // 16 KiB: the most that one record carries
constexpr std::size_t kKey = 32;

using Key = std::array<unsigned char, kKey>;

// The functions of libssl that are called here; those of libcrypto are linked.
struct Ssl {
  decltype(&::TLS_method) method = nullptr;
  decltype(&::SSL_CTX_new) context_new = nullptr;
  decltype(&::SSL_CTX_free) context_free = nullptr;
  decltype(&::SSL_CTX_ctrl) context_control = nullptr;
  decltype(&::SSL_CTX_set_ciphersuites) set_ciphersuites = nullptr;
  decltype(&::SSL_CTX_set_num_tickets) set_num_tickets = nullptr;
  decltype(&::SSL_CTX_use_certificate) use_certificate = nullptr;
  decltype(&::SSL_CTX_use_PrivateKey) use_key = nullptr;
  decltype(&::SSL_CTX_set_verify) set_verify = nullptr;
  decltype(&::SSL_CTX_set_cert_verify_callback) set_verify_callback = nullptr;
  decltype(&::SSL_new) make = nullptr;
  decltype(&::SSL_free) free = nullptr;
  decltype(&::SSL_set_bio) set_bio = nullptr;
  decltype(&::SSL_set_accept_state) accepts = nullptr;
  decltype(&::SSL_set_connect_state) connects = nullptr;
  decltype(&::SSL_do_handshake) shake_hands = nullptr;
  decltype(&::SSL_read_ex) read = nullptr;
  decltype(&::SSL_write_ex) write = nullptr;
  decltype(&::SSL_get_error) error_of = nullptr;
  decltype(&::SSL_pending) pending = nullptr;
  decltype(&::SSL_key_update) update_key = nullptr;
  decltype(&::SSL_shutdown) shutdown = nullptr;
};

Result<Ssl> load_ssl() {
  const LateLibrary library =
      TRY(LateLibrary::load({"libssl.so.3", "libssl3", "ranks.tls encrypts with OpenSSL's libssl"}));
  Ssl ssl;
  TRY(library.fill(ssl.method, "TLS_method"));
  TRY(library.fill(ssl.context_new, "SSL_CTX_new"));
  TRY(library.fill(ssl.context_free, "SSL_CTX_free"));
  TRY(library.fill(ssl.context_control, "SSL_CTX_ctrl"));
  TRY(library.fill(ssl.set_ciphersuites, "SSL_CTX_set_ciphersuites"));
  TRY(library.fill(ssl.set_num_tickets, "SSL_CTX_set_num_tickets"));
  TRY(library.fill(ssl.use_certificate, "SSL_CTX_use_certificate"));
  TRY(library.fill(ssl.use_key, "SSL_CTX_use_PrivateKey"));
  TRY(library.fill(ssl.set_verify, "SSL_CTX_set_verify"));
  TRY(library.fill(ssl.set_verify_callback, "SSL_CTX_set_cert_verify_callback"));
  TRY(library.fill(ssl.make, "SSL_new"));
  TRY(library.fill(ssl.free, "SSL_free"));
  TRY(library.fill(ssl.set_bio, "SSL_set_bio"));
  TRY(library.fill(ssl.accepts, "SSL_set_accept_state"));
  TRY(library.fill(ssl.connects, "SSL_set_connect_state"));
  TRY(library.fill(ssl.shake_hands, "SSL_do_handshake"));
  TRY(library.fill(ssl.read, "SSL_read_ex"));
  TRY(library.fill(ssl.write, "SSL_write_ex"));
  TRY(library.fill(ssl.error_of, "SSL_get_error"));
  TRY(library.fill(ssl.pending, "SSL_pending"));
  TRY(library.fill(ssl.update_key, "SSL_key_update"));
  TRY(library.fill(ssl.shutdown, "SSL_shutdown"));
  return ssl;
}

const Result<Ssl>& ssl_here() {
  static const Result<Ssl> loaded = load_ssl();
  return loaded;
}

void must(bool done, const char* what) {
  if (!done) fail(error(ErrorKind::internal, "OpenSSL: {} failed", what));
}

template <typename T, void (*Free)(T*)>
struct Freed {
  void operator()(T* held) const { Free(held); }
};
template <typename T, void (*Free)(T*)>
using Held = std::unique_ptr<T, Freed<T, Free>>;
using HeldKey = Held<EVP_PKEY, EVP_PKEY_free>;
using HeldKeyContext = Held<EVP_PKEY_CTX, EVP_PKEY_CTX_free>;
using HeldCertificate = Held<X509, X509_free>;

const unsigned char* raw(const std::byte* bytes) { return reinterpret_cast<const unsigned char*>(bytes); }
const unsigned char* raw(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }

HeldKey key_of(const RunToken& token) {
  const HeldKeyContext context(EVP_PKEY_CTX_new_id(EVP_PKEY_HKDF, nullptr));
  Key seed;
  std::size_t size = seed.size();
  must(context && EVP_PKEY_derive_init(context.get()) == 1 &&
           EVP_PKEY_CTX_set_hkdf_md(context.get(), EVP_sha256()) == 1 &&
           EVP_PKEY_CTX_set1_hkdf_key(context.get(), raw(token.bytes().data()), static_cast<int>(RunToken::kSize)) ==
               1 &&
           EVP_PKEY_CTX_add1_hkdf_info(context.get(), raw(kLabel), static_cast<int>(kLabel.size())) == 1 &&
           EVP_PKEY_derive(context.get(), seed.data(), &size) == 1 && size == seed.size(),
       "HKDF");
  HeldKey key(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, seed.data(), seed.size()));
  must(key != nullptr, "Ed25519");
  return key;
}

bool public_part(const EVP_PKEY* key, Key& part) {
  std::size_t size = part.size();
  return key != nullptr && EVP_PKEY_get_id(key) == EVP_PKEY_ED25519 &&
         EVP_PKEY_get_raw_public_key(key, part.data(), &size) == 1 && size == part.size();
}

// Its names and dates say nothing, and nobody looks at them.
HeldCertificate certificate_of(EVP_PKEY* key) {
  HeldCertificate made(X509_new());
  must(made != nullptr, "X509");
  X509* const c = made.get();
  X509_NAME* const name = X509_get_subject_name(c);
  must(X509_set_version(c, X509_VERSION_3) == 1 && ASN1_INTEGER_set(X509_get_serialNumber(c), 1) == 1 &&
           ASN1_TIME_set_string(X509_getm_notBefore(c), "20000101000000Z") == 1 &&
           ASN1_TIME_set_string(X509_getm_notAfter(c), "99991231235959Z") == 1 &&
           X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, raw("systole run"), -1, -1, 0) == 1 &&
           X509_set_issuer_name(c, name) == 1 && X509_set_pubkey(c, key) == 1 && X509_sign(c, key, nullptr) > 0,
       "X509");
  return made;
}

// In place of the walk along a chain to an authority: the peer's certificate has our key. That it holds the secret part
// is proved by its signature of the handshake.
int is_ours(X509_STORE_CTX* checked, void* ours) {
  Key theirs;
  const X509* const certificate = X509_STORE_CTX_get0_cert(checked);
  const bool same = certificate != nullptr && public_part(X509_get0_pubkey(certificate), theirs) &&
                    theirs == *static_cast<const Key*>(ours);
  X509_STORE_CTX_set_error(checked, same ? X509_V_OK : X509_V_ERR_CERT_REJECTED);
  return same ? 1 : 0;
}

// OpenSSL's own sockets would raise SIGPIPE.
struct Socket {
  int fd = -1;
  int failed = 0;  // the last errno that was not of waiting
  bool ended = false;
  bool holds_back = false;  // what cannot be written now is kept, to go before what is written next
  std::string kept;
};

Socket& socket_of(BIO* bio) { return *static_cast<Socket*>(BIO_get_data(bio)); }

// As send(2), or 0 where that would wait.
ssize_t send_some(Socket& socket, const char* bytes, std::size_t size) {
  ssize_t sent = -1;
  do { sent = ::send(socket.fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT); } while (sent < 0 && errno == EINTR);
  if (sent >= 0) return sent;
  if (errno == EAGAIN || errno == EWOULDBLOCK) return 0;
  socket.failed = errno;
  return -1;
}

int write_socket(BIO* bio, const char* bytes, int size) {
  Socket& socket = socket_of(bio);
  BIO_clear_retry_flags(bio);
  while (!socket.kept.empty()) {
    const ssize_t sent = send_some(socket, socket.kept.data(), socket.kept.size());
    if (sent == 0) BIO_set_retry_write(bio);
    if (sent <= 0) return -1;
    socket.kept.erase(0, static_cast<std::size_t>(sent));
  }
  const ssize_t sent = send_some(socket, bytes, static_cast<std::size_t>(size));
  if (sent == 0 && socket.holds_back) {
    socket.kept.assign(bytes, static_cast<std::size_t>(size));
    return size;
  }
  if (sent == 0) BIO_set_retry_write(bio);
  return sent == 0 ? -1 : static_cast<int>(sent);
}

int read_socket(BIO* bio, char* bytes, int size) {
  Socket& socket = socket_of(bio);
  BIO_clear_retry_flags(bio);
  ssize_t got = -1;
  do {
    got = ::recv(socket.fd, bytes, static_cast<std::size_t>(size), MSG_DONTWAIT);
  } while (got < 0 && errno == EINTR);
  if (got == 0) socket.ended = true;
  if (got >= 0) return static_cast<int>(got);
  if (errno == EAGAIN || errno == EWOULDBLOCK) {
    BIO_set_retry_read(bio);
  } else {
    socket.failed = errno;
  }
  return -1;
}

long control_socket(BIO* bio, int what, long, void*) {
  if (what == BIO_CTRL_EOF) return socket_of(bio).ended ? 1 : 0;
  return what == BIO_CTRL_FLUSH ? 1 : 0;  // nothing is held back
}

const BIO_METHOD* socket_method() {
  static const Held<BIO_METHOD, BIO_meth_free> made = [] {
    Held<BIO_METHOD, BIO_meth_free> method(BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "systole"));
    must(method && BIO_meth_set_write(method.get(), &write_socket) == 1 &&
             BIO_meth_set_read(method.get(), &read_socket) == 1 &&
             BIO_meth_set_ctrl(method.get(), &control_socket) == 1,
         "BIO_METHOD");
    return method;
  }();
  return made.get();
}

// What a peer says that refuses our certificate (RFC 8446, 6.2).
bool refuses_our_key(int reason) {
  constexpr int kReasons[] = {SSL_R_SSLV3_ALERT_BAD_CERTIFICATE,     SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE,
                              SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED, SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED,
                              SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN, SSL_R_TLSV1_ALERT_UNKNOWN_CA,
                              SSL_R_TLSV1_ALERT_ACCESS_DENIED,       SSL_R_TLSV1_ALERT_DECRYPT_ERROR};
  return std::ranges::find(kReasons, reason) != std::end(kReasons);
}

bool is_key_of_another(int reason) {
  return reason == SSL_R_CERTIFICATE_VERIFY_FAILED || reason == SSL_R_BAD_SIGNATURE || refuses_our_key(reason);
}

}  // namespace

struct Tls::State {
  const Ssl& ssl;
  Key ours{};
  SSL_CTX* context = nullptr;
  std::int64_t records_of_a_key;
  State(const Ssl& functions, std::int64_t records) : ssl(functions), records_of_a_key(records) {}
  ~State() {
    if (context != nullptr) ssl.context_free(context);
  }
  State(const State&) = delete;
};

Tls::Tls(std::unique_ptr<State> state) : state_(std::move(state)) {}
Tls::~Tls() = default;

Result<std::shared_ptr<const Tls>> Tls::of(const RunToken& token, std::int64_t records_of_a_key) {
  const Result<Ssl>& loaded = ssl_here();
  if (!loaded.ok()) return loaded.error();
  auto state = std::make_unique<State>(*loaded, records_of_a_key);
  const Ssl& ssl = state->ssl;
  const HeldKey key = key_of(token);
  const HeldCertificate certificate = certificate_of(key.get());
  must(public_part(key.get(), state->ours), "Ed25519");
  state->context = ssl.context_new(ssl.method());
  SSL_CTX* const c = state->context;
  // The versions above the user's openssl.cnf, which may know others.
  must(c != nullptr && ssl.context_control(c, SSL_CTRL_SET_MAX_PROTO_VERSION, TLS1_3_VERSION, nullptr) == 1 &&
           ssl.context_control(c, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_3_VERSION, nullptr) == 1 &&
           ssl.set_ciphersuites(c, "TLS_AES_128_GCM_SHA256") == 1 && ssl.set_num_tickets(c, 0) == 1 &&
           ssl.use_certificate(c, certificate.get()) == 1 && ssl.use_key(c, key.get()) == 1,
       "SSL_CTX");
  ssl.context_control(c, SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_OFF, nullptr);
  ssl.set_verify(c, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  ssl.set_verify_callback(c, &is_ours, &state->ours);
  return std::shared_ptr<const Tls>(new Tls(std::move(state)));
}

struct TlsSession::State {
  std::shared_ptr<const Tls> tls;
  const Ssl& ssl;
  Socket socket;
  SSL* session = nullptr;
  bool reading_writes = false, writing_reads = false;  // what the last call of each waits for
  bool shaking = true, broken = false;                 // broken: nothing more is asked of OpenSSL
  std::int64_t records = 0;                            // sent with this key
  std::size_t held = 0;                                // bytes of `record` that OpenSSL has begun to write
  std::array<std::byte, kRecord> record;               // of one's own bytes, from several runs

  State(std::shared_ptr<const Tls> of, const Ssl& functions) : tls(std::move(of)), ssl(functions) {}
  ~State() {
    if (session != nullptr) ssl.free(session);
  }
  State(const State&) = delete;

  // -1 with errno, or 0 for an end, after a call of OpenSSL that gave `result`.
  ssize_t outcome(int result, bool& waits_for_the_other, int waits_usually) {
    const int why = ssl.error_of(session, result);
    waits_for_the_other = false;
    if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) {
      waits_for_the_other = why != waits_usually;
      errno = EAGAIN;
      return -1;
    }
    if (why == SSL_ERROR_ZERO_RETURN || socket.ended) return 0;  // with a last word, or without
    broken = broken || why != SSL_ERROR_SYSCALL;
    errno = why == SSL_ERROR_SYSCALL && socket.failed != 0 ? socket.failed : EPROTO;
    return -1;
  }

  // Bytes of the runs behind the first `passed`, which are of the first run, as many as a record takes.
  std::size_t gather(std::span<const iovec> runs, std::size_t passed) {
    std::size_t size = 0;
    for (const iovec& run : runs) {
      const std::size_t piece = std::min(run.iov_len - passed, kRecord - size);
      if (piece == 0) break;
      std::memcpy(record.data() + size, static_cast<const std::byte*>(run.iov_base) + passed, piece);
      size += piece;
      passed = 0;
    }
    return size;
  }

  // A new key for what is sent from now on. It is told in a record of its own, which is kept where the socket is full:
  // OpenSSL would not read before it has left, and two that have filled each other's sockets would wait for ever.
  void renew_key() {
    records = 0;
    ERR_clear_error();
    must(ssl.update_key(session, SSL_KEY_UPDATE_NOT_REQUESTED) == 1, "SSL_key_update");
    socket.holds_back = true;
    (void)ssl.shake_hands(session);  // what fails here fails again when the next record is written
    socket.holds_back = false;
  }

  // The record that is held, whole, or -1.
  ssize_t write_record() {
    if (broken) {
      errno = EPROTO;
      return -1;
    }
    ERR_clear_error();
    std::size_t written = 0;
    const int result = ssl.write(session, record.data(), held, &written);
    if (result != 1) {
      const ssize_t failed = outcome(result, writing_reads, SSL_ERROR_WANT_WRITE);
      if (failed == 0) errno = EPIPE;
      return -1;
    }
    writing_reads = false;
    held = 0;
    ++records;
    return static_cast<ssize_t>(written);
  }
};

TlsSession::TlsSession(std::shared_ptr<const Tls> tls, TlsSide side, int fd) {
  const Tls::State& of = *tls->state_;
  state_ = std::make_unique<State>(std::move(tls), of.ssl);
  State& s = *state_;
  s.socket.fd = fd;
  s.session = s.ssl.make(of.context);
  BIO* const bio = BIO_new(socket_method());
  must(s.session != nullptr && bio != nullptr, "SSL");
  BIO_set_data(bio, &s.socket);
  BIO_set_init(bio, 1);
  s.ssl.set_bio(s.session, bio, bio);
  side == TlsSide::client ? s.ssl.connects(s.session) : s.ssl.accepts(s.session);
}
TlsSession::~TlsSession() = default;

Result<bool> TlsSession::shake_hands(const std::string& peer) {
  State& s = *state_;
  if (!s.shaking) return true;
  ERR_clear_error();
  const int result = s.ssl.shake_hands(s.session);
  if (result == 1) {
    s.shaking = s.reading_writes = false;
    return true;
  }
  if (s.outcome(result, s.reading_writes, SSL_ERROR_WANT_READ) < 0 && errno == EAGAIN) return false;
  s.broken = true;
  const int reason = ERR_GET_REASON(ERR_peek_error());
  if (is_key_of_another(reason)) {
    return error(ErrorKind::invalid, "{} holds the key of another token", peer)
        .hinted("all processes of a run need the token of that run");
  }
  if (s.socket.ended || s.socket.failed != 0) return error(ErrorKind::io, "{} closed the connection", peer);
  return error(ErrorKind::corrupt, "{} says what is no TLS 1.3", peer);
}

ssize_t TlsSession::receive(std::span<std::byte> bytes) {
  State& s = *state_;
  if (s.broken) {
    errno = EPROTO;
    return -1;
  }
  ERR_clear_error();
  std::size_t got = 0;
  const int result = s.ssl.read(s.session, bytes.data(), bytes.size(), &got);
  if (result != 1) return s.outcome(result, s.reading_writes, SSL_ERROR_WANT_READ);
  s.reading_writes = false;
  return static_cast<ssize_t>(got);
}

ssize_t TlsSession::send(std::span<const iovec> runs) {
  State& s = *state_;
  ssize_t all = 0;
  std::size_t passed = 0;  // bytes of the first run that have left
  for (;;) {
    if (s.held == 0) {
      s.held = s.gather(runs, passed);
      if (s.held == 0) return all;
      if (s.records >= s.tls->state_->records_of_a_key) s.renew_key();
    }
    const ssize_t sent = s.write_record();
    if (sent < 0) return all > 0 && errno == EAGAIN ? all : -1;
    all += sent;
    passed += static_cast<std::size_t>(sent);
    while (!runs.empty() && passed >= runs.front().iov_len) {
      passed -= runs.front().iov_len;
      runs = runs.subspan(1);
    }
  }
}

short TlsSession::awaits(short events) const {
  const State& s = *state_;
  short wanted = 0;
  if ((events & POLLIN) != 0) wanted |= s.reading_writes ? POLLOUT : POLLIN;
  if ((events & POLLOUT) != 0) wanted |= s.writing_reads ? POLLIN : POLLOUT;
  return wanted;
}

bool TlsSession::holds_bytes() const { return !state_->broken && state_->ssl.pending(state_->session) > 0; }

void TlsSession::end() {
  State& s = *state_;
  if (s.broken || s.shaking || s.held > 0) return;
  ERR_clear_error();
  (void)s.ssl.shutdown(s.session);
}

}  // namespace systole
