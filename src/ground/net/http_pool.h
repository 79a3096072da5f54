#pragma once
// HTTP clients of one trust for several threads: each request takes an idle client, whose connection may still be open,
// or opens one. Thread-safe.

#include <memory>
#include <mutex>
#include <vector>

#include "ground/net/http_client.h"

namespace systole {

class HttpPool {
 public:
  // Keeps up to `keeps` idle clients.
  explicit HttpPool(HttpTrust trust, std::size_t keeps = 32) : trust_(std::move(trust)), keeps_(keeps) {}
  // Errors: as HttpClient::open and HttpClient::send.
  Result<HttpReply> send(const HttpRequest& request);

 private:
  Result<std::unique_ptr<HttpClient>> take();

  const HttpTrust trust_;
  const std::size_t keeps_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<HttpClient>> idle_;  // the last used at the end: its connection is the likeliest open
};

// What the environment says of trust: SSL_CERT_FILE, which other clients of OpenSSL read by themselves.
HttpTrust trust_of_environment();

}  // namespace systole
