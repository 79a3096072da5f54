#pragma once
// Which handler gets a request, of which the head is known, or why none does. Part of HttpServer.

#include <array>
#include <optional>
#include <vector>

#include "ground/net/http_server.h"

namespace systole {

struct HttpAdmission {
  const HttpRoute* route = nullptr;  // null: refused
  HttpHeaders parameters;
  HttpFault fault;
  HttpHeaders headers;  // of the refusal
};

class HttpGate {
 public:
  HttpGate(std::vector<HttpRoute> routes, const std::vector<std::string>& tokens, Bytes most_body);
  // Refusals: 401, 404, 405, 411, 413.
  HttpAdmission look_at(const HttpRequestHead& head) const;

 private:
  using Digest = std::array<unsigned char, 32>;
  static Digest digest_of(std::string_view token);
  bool shows_token(const HttpRequestHead& head) const;

  std::vector<HttpRoute> routes_;
  std::vector<Digest> tokens_;
  Bytes most_body_;
};

}  // namespace systole
