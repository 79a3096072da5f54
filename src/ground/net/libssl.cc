#include "ground/net/libssl.h"

#include "ground/base/late_library.h"

namespace systole {
namespace {

Result<Ssl> load_ssl() {
  const LateLibrary library =
      TRY(LateLibrary::load({"libssl.so.3", "libssl3", "TLS is encrypted by OpenSSL's libssl"}));
  Ssl ssl;
  TRY(library.fill(ssl.method, "TLS_method"));
  TRY(library.fill(ssl.context_new, "SSL_CTX_new"));
  TRY(library.fill(ssl.context_free, "SSL_CTX_free"));
  TRY(library.fill(ssl.context_control, "SSL_CTX_ctrl"));
  TRY(library.fill(ssl.set_options, "SSL_CTX_set_options"));
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

}  // namespace

const Result<Ssl>& libssl() {
  static const Result<Ssl> loaded = load_ssl();
  return loaded;
}

}  // namespace systole
