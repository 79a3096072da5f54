#pragma once
// OpenSSL's libssl, loaded on first use (ground/base/late_library.h), so that processes without TLS never map it.

#include <openssl/ssl.h>

#include "ground/base/result.h"

namespace systole {

// The libssl functions that tls.cc and http_tls.cc call. libcrypto is linked.
struct Ssl {
  decltype(&::TLS_method) method = nullptr;
  decltype(&::SSL_CTX_new) context_new = nullptr;
  decltype(&::SSL_CTX_free) context_free = nullptr;
  decltype(&::SSL_CTX_ctrl) context_control = nullptr;
  decltype(&::SSL_CTX_set_options) set_options = nullptr;
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

// One per process; callable from any thread. Errors: unsupported, with the package that provides it.
const Result<Ssl>& libssl();

}  // namespace systole
