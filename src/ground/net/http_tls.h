#pragma once
// TLS of a server that shows a certificate and asks for none, over libevent. TLS 1.2 or newer. OpenSSL's libssl and
// libevent's face on it are loaded with the first server that has a certificate.

#include <memory>
#include <string>

#include "ground/base/result.h"

struct bufferevent;
struct event_base;

namespace systole {

class HttpTls {
 public:
  // PEM files; the certificate is followed by its chain. Errors: not_found, io; invalid (no certificate or key of it, a
  // key with a password or that others may read); unsupported (no libssl or libevent_openssl here).
  static Result<std::unique_ptr<HttpTls>> open(const std::string& certificate, const std::string& key);
  ~HttpTls();
  HttpTls(const HttpTls&) = delete;
  HttpTls& operator=(const HttpTls&) = delete;

  // A connection that begins with the handshake and owns `fd`, which is non-blocking.
  bufferevent* accept(event_base* loop, int fd) const;
  void end(bufferevent* connection) const;  // sends close_notify, if it can be written now

 private:
  struct State;
  explicit HttpTls(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace systole
