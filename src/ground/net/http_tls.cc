#include "ground/net/http_tls.h"

#include <event2/bufferevent_ssl.h>
#include <openssl/err.h>
#include <openssl/pem.h>

#include <new>

#include "ground/base/late_library.h"
#include "ground/base/text_file.h"
#include "ground/net/libssl.h"

namespace systole {
namespace {

constexpr Bytes kMostPem = kMiB;

// The functions of libevent_openssl in use.
struct EventSsl {
  decltype(&::bufferevent_openssl_socket_new) make = nullptr;
  decltype(&::bufferevent_openssl_get_ssl) session = nullptr;
};

Result<EventSsl> load_event_ssl() {
  const LateLibrary library = TRY(LateLibrary::load(
      {"libevent_openssl-2.1.so.7", "libevent-openssl-2.1-7", "HTTPS is served through libevent_openssl"}));
  EventSsl functions;
  TRY(library.fill(functions.make, "bufferevent_openssl_socket_new"));
  TRY(library.fill(functions.session, "bufferevent_openssl_get_ssl"));
  return functions;
}

const Result<EventSsl>& event_ssl() {
  static const Result<EventSsl> loaded = load_event_ssl();
  return loaded;
}

template <auto free_it>
struct Frees {
  template <typename T>
  void operator()(T* held) const {
    free_it(held);
  }
};
template <typename T, auto free_it>
using Owned = std::unique_ptr<T, Frees<free_it>>;

Owned<BIO, BIO_free> reader(const std::string& text) {
  return Owned<BIO, BIO_free>(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// OpenSSL would ask at the terminal.
int no_password(char*, int, int, void*) { return -1; }

}  // namespace

struct HttpTls::State {
  const Ssl& ssl;
  const EventSsl& event;
  SSL_CTX* context = nullptr;
  State(const Ssl& functions, const EventSsl& events) : ssl(functions), event(events) {}
  ~State() {
    if (context != nullptr) ssl.context_free(context);
  }
  State(const State&) = delete;

  bool settle() {
    context = ssl.context_new(ssl.method());
    if (context == nullptr) return false;
    ssl.set_options(context, SSL_OP_NO_RENEGOTIATION);
    ssl.context_control(context, SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_OFF, nullptr);
    ssl.context_control(context, SSL_CTRL_MODE, SSL_MODE_RELEASE_BUFFERS, nullptr);  // idle connections are many
    return ssl.context_control(context, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_2_VERSION, nullptr) == 1;
  }
  bool take_certificates(const std::string& text) {
    const Owned<BIO, BIO_free> pem = reader(text);
    const Owned<X509, X509_free> own(PEM_read_bio_X509(pem.get(), nullptr, &no_password, nullptr));
    if (!own || ssl.use_certificate(context, own.get()) != 1) return false;
    while (Owned<X509, X509_free> next{PEM_read_bio_X509(pem.get(), nullptr, &no_password, nullptr)})
      if (ssl.context_control(context, SSL_CTRL_CHAIN_CERT, 1, next.get()) != 1) return false;
    return ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;  // the end of the file, and no damage
  }
};

HttpTls::HttpTls(std::unique_ptr<State> state) : state_(std::move(state)) {}
HttpTls::~HttpTls() = default;

Result<std::unique_ptr<HttpTls>> HttpTls::open(const std::string& certificate, const std::string& key) {
  const Result<Ssl>& ssl = libssl();
  if (!ssl.ok()) return ssl.error();
  const Result<EventSsl>& event = event_ssl();
  if (!event.ok()) return event.error();
  const std::string chain = TRY(read_text_file(certificate, kMostPem));
  const std::string secret = TRY(read_secret_file(key, kMostPem));
  auto state = std::make_unique<State>(*ssl, *event);
  if (!state->settle()) return error(ErrorKind::internal, "OpenSSL gives no TLS context");
  ERR_clear_error();
  const bool has_certificates = state->take_certificates(chain);
  ERR_clear_error();
  if (!has_certificates)
    return error(ErrorKind::invalid, "'{}' holds no certificate in PEM", certificate)
        .hinted("the server's certificate comes first, then those that lead to its authority");
  const Owned<BIO, BIO_free> pem = reader(secret);
  const Owned<EVP_PKEY, EVP_PKEY_free> own(PEM_read_bio_PrivateKey(pem.get(), nullptr, &no_password, nullptr));
  ERR_clear_error();
  if (!own)
    return error(ErrorKind::invalid, "'{}' holds no private key in PEM without a password", key)
        .hinted("openssl pkey -in KEY -out PLAIN takes its password away");
  const bool fits = state->ssl.use_key(state->context, own.get()) == 1;
  ERR_clear_error();
  if (!fits) return error(ErrorKind::invalid, "'{}' is not the key of the certificate in '{}'", key, certificate);
  return std::unique_ptr<HttpTls>(new HttpTls(std::move(state)));
}

bufferevent* HttpTls::accept(event_base* loop, int fd) const {
  SSL* const session = state_->ssl.make(state_->context);
  if (session == nullptr) throw std::bad_alloc();
  bufferevent* const made =
      state_->event.make(loop, fd, session, BUFFEREVENT_SSL_ACCEPTING, BEV_OPT_CLOSE_ON_FREE);  // frees the session
  if (made == nullptr) throw std::bad_alloc();
  return made;
}

void HttpTls::end(bufferevent* connection) const {
  SSL* const session = state_->event.session(connection);
  ERR_clear_error();
  if (session != nullptr) (void)state_->ssl.shutdown(session);
  ERR_clear_error();
}

}  // namespace systole
