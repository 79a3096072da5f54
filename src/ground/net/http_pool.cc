#include "ground/net/http_pool.h"

#include <cstdlib>

namespace systole {

Result<std::unique_ptr<HttpClient>> HttpPool::take() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<HttpClient> client = std::move(idle_.back());
      idle_.pop_back();
      return client;
    }
  }
  return HttpClient::open(trust_);
}

Result<HttpReply> HttpPool::send(const HttpRequest& request) {
  std::unique_ptr<HttpClient> client = TRY(take());
  Result<HttpReply> reply = client->send(request);
  const std::lock_guard lock(mutex_);
  if (idle_.size() < keeps_) idle_.push_back(std::move(client));
  return reply;
}

HttpTrust trust_of_environment() {
  HttpTrust trust;
  if (const char* file = std::getenv("SSL_CERT_FILE"); file != nullptr) trust.authorities.file = file;
  return trust;
}

}  // namespace systole
