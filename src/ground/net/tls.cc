#include "ground/net/tls.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/x509.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "ground/net/libssl.h"

namespace systole {
namespace {

constexpr std::string_view kLabel = "systole run, TLS, Ed25519, 1";  // another label derives another key from the token
constexpr std::size_t kRecord = SSL3_RT_MAX_PLAIN_LENGTH;            // 16 KiB: the maximum of one record
constexpr std::size_t kBatch = 4 * kRecord;                          // encrypted together and sent by one call
constexpr std::size_t kFewBytes = 4096, kReadAhead = 128 << 10;
constexpr std::size_t kKey = 32;

using Key = std::array<unsigned char, kKey>;

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

// Its names and dates carry no information, and nobody checks them.
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

// Replaces the check of a certificate chain: the peer's certificate must have our key. The handshake signature proves
// that the peer has the private key.
int is_ours(X509_STORE_CTX* checked, void* ours) {
  Key theirs;
  const X509* const certificate = X509_STORE_CTX_get0_cert(checked);
  const bool same = certificate != nullptr && public_part(X509_get0_pubkey(certificate), theirs) &&
                    theirs == *static_cast<const Key*>(ours);
  X509_STORE_CTX_set_error(checked, same ? X509_V_OK : X509_V_ERR_CERT_REJECTED);
  return same ? 1 : 0;
}

// OpenSSL writes to `out`, so it never blocks in the middle of an operation. Input is read ahead, so a record needs no
// system call of its own. OpenSSL's own sockets would also raise SIGPIPE.
struct Socket {
  int fd = -1;
  int failed = 0;  // the last errno of receiving, other than EAGAIN
  bool ended = false;
  std::vector<char> out, in = std::vector<char>(kFewBytes);
  std::size_t sent = 0;            // bytes of `out` already sent
  std::size_t begin = 0, end = 0;  // the unread range of `in`
};

Socket& socket_of(BIO* bio) { return *static_cast<Socket*>(BIO_get_data(bio)); }

int write_socket(BIO* bio, const char* bytes, int size) {
  std::vector<char>& out = socket_of(bio).out;
  out.insert(out.end(), bytes, bytes + size);
  return size;
}

int read_socket(BIO* bio, char* bytes, int size) {
  Socket& s = socket_of(bio);
  BIO_clear_retry_flags(bio);
  if (s.begin == s.end) {
    if (s.end == s.in.size()) s.in.resize(std::min(2 * s.in.size(), kReadAhead));  // it was full: more may come
    s.begin = s.end = 0;
    ssize_t got = -1;
    do { got = ::recv(s.fd, s.in.data(), s.in.size(), MSG_DONTWAIT); } while (got < 0 && errno == EINTR);
    if (got == 0) s.ended = true;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      BIO_set_retry_read(bio);
    } else if (got < 0) {
      s.failed = errno;
    }
    if (got <= 0) return static_cast<int>(got);
    s.end = static_cast<std::size_t>(got);
  }
  const std::size_t piece = std::min(static_cast<std::size_t>(size), s.end - s.begin);
  std::memcpy(bytes, s.in.data() + s.begin, piece);
  s.begin += piece;
  return static_cast<int>(piece);
}

long control_socket(BIO* bio, int what, long, void*) {
  if (what == BIO_CTRL_EOF) return socket_of(bio).ended ? 1 : 0;
  return what == BIO_CTRL_FLUSH ? 1 : 0;
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

// The alerts of a peer that refuses our certificate (RFC 8446, 6.2).
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
  const Result<Ssl>& loaded = libssl();
  if (!loaded.ok()) return loaded.error();
  auto state = std::make_unique<State>(*loaded, records_of_a_key);
  const Ssl& ssl = state->ssl;
  const HeldKey key = key_of(token);
  const HeldCertificate certificate = certificate_of(key.get());
  must(public_part(key.get(), state->ours), "Ed25519");
  state->context = ssl.context_new(ssl.method());
  SSL_CTX* const c = state->context;
  // Overrides the versions in the user's openssl.cnf.
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
  bool shaking = true, broken = false;  // broken: OpenSSL is not called any more
  std::int64_t records = 0;             // sent with the current key
  std::size_t held = 0;                 // bytes of the caller that are encrypted but not fully sent
  std::vector<std::byte> pieces;        // gathers short runs into one record

  State(std::shared_ptr<const Tls> of, const Ssl& functions) : tls(std::move(of)), ssl(functions) {}
  ~State() {
    if (session != nullptr) ssl.free(session);
  }
  State(const State&) = delete;

  // Sends all encrypted bytes. False with errno if the socket did not take them all.
  bool flush() {
    Socket& s = socket;
    while (s.sent < s.out.size()) {
      const ssize_t some = ::send(s.fd, s.out.data() + s.sent, s.out.size() - s.sent, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (some < 0 && errno == EINTR) continue;
      if (some < 0) return false;
      s.sent += static_cast<std::size_t>(some);
    }
    s.out.clear();
    s.sent = 0;
    return true;
  }

  // Maps the `result` of an OpenSSL call: -1 with errno, or 0 for an end. Also sends OpenSSL's reply, if possible.
  ssize_t outcome(int result) {
    const int why = ssl.error_of(session, result);
    (void)flush();
    if (why == SSL_ERROR_WANT_READ) {
      errno = EAGAIN;
      return -1;
    }
    if (why == SSL_ERROR_ZERO_RETURN || socket.ended) return 0;  // with or without close_notify
    broken = broken || why != SSL_ERROR_SYSCALL;
    errno = why == SSL_ERROR_SYSCALL && socket.failed != 0 ? socket.failed : EPROTO;
    return -1;
  }

  // False if the session has failed.
  bool encrypt(const void* bytes, std::size_t size) {
    if (records >= tls->state_->records_of_a_key) {
      records = 0;
      broken = ssl.update_key(session, SSL_KEY_UPDATE_NOT_REQUESTED) != 1 || ssl.shake_hands(session) != 1;
    }
    std::size_t written = 0;
    broken = broken || ssl.write(session, bytes, size, &written) != 1 || written != size;
    records += static_cast<std::int64_t>((size + kRecord - 1) / kRecord);
    return !broken;
  }

  // Encrypts a batch of the runs after the first `passed` bytes, which are in the first run. Full records are encrypted
  // in place; short runs are gathered into one record.
  std::size_t encrypt(std::span<const iovec> runs, std::size_t passed) {
    ERR_clear_error();
    std::size_t taken = 0;
    while (!runs.empty() && taken + kRecord <= kBatch) {
      const auto* const from = static_cast<const std::byte*>(runs.front().iov_base) + passed;
      const std::size_t whole = std::min(runs.front().iov_len - passed, kBatch - taken) / kRecord * kRecord;
      const std::size_t size = whole > 0 ? whole : gather(runs, passed);
      if (size > 0 && !encrypt(whole > 0 ? from : pieces.data(), size)) break;
      taken += size;
      passed += size;
      skip(runs, passed);
    }
    return taken;
  }

  std::size_t gather(std::span<const iovec> runs, std::size_t passed) {
    pieces.clear();
    for (const iovec& run : runs) {
      const auto* const from = static_cast<const std::byte*>(run.iov_base) + passed;
      const std::size_t piece = std::min(run.iov_len - passed, kRecord - pieces.size());
      pieces.insert(pieces.end(), from, from + piece);
      passed = 0;
      if (pieces.size() == kRecord) break;
    }
    return pieces.size();
  }

  static void skip(std::span<const iovec>& runs, std::size_t& passed) {
    while (!runs.empty() && passed >= runs.front().iov_len) {
      passed -= runs.front().iov_len;
      runs = runs.subspan(1);
    }
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
  if (s.shaking) {
    ERR_clear_error();
    const int result = s.ssl.shake_hands(s.session);
    if (result == 1) {
      s.shaking = false;
    } else if (s.outcome(result) >= 0 || errno != EAGAIN) {
      return refusal(peer);
    }
  }
  if (!s.flush() && errno != EAGAIN && errno != EWOULDBLOCK)
    return error(ErrorKind::io, "{} closed the connection", peer);
  return !s.shaking && s.socket.out.empty();
}

Error TlsSession::refusal(const std::string& peer) {
  State& s = *state_;
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
  return result == 1 ? static_cast<ssize_t>(got) : s.outcome(result);
}

ssize_t TlsSession::send(std::span<const iovec> runs) {
  State& s = *state_;
  ssize_t all = 0;
  for (std::size_t passed = 0;;) {
    if (!s.flush()) return all > 0 && errno == EAGAIN ? all : -1;
    all += static_cast<ssize_t>(s.held);
    passed += s.held;
    State::skip(runs, passed);
    s.held = 0;
    if (runs.empty()) return all;
    if (!s.broken) s.held = s.encrypt(runs, passed);
    if (s.broken) {
      errno = s.socket.ended ? EPIPE : EPROTO;
      return -1;
    }
  }
}

short TlsSession::awaits(short events) const {
  const State& s = *state_;
  const bool has_more_to_say = s.held == 0 && !s.socket.out.empty();  // for example in the handshake
  return static_cast<short>(has_more_to_say ? events | POLLOUT : events);
}

bool TlsSession::holds_bytes() const {
  const State& s = *state_;
  return !s.broken && (s.ssl.pending(s.session) > 0 || s.socket.begin < s.socket.end);
}

void TlsSession::end() {
  State& s = *state_;
  if (s.broken || s.shaking) return;
  ERR_clear_error();
  (void)s.ssl.shutdown(s.session);
  (void)s.flush();
}

}  // namespace systole
