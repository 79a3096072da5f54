#pragma once
// One small document over HTTP, as metadata servers give it: plain, no redirects, nothing kept open.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ground/net/socket.h"

namespace systole {

struct HttpPlace {
  NetAddress address;
  std::string path = "/";
};
// "http://host[:port]/path". Errors: invalid.
Result<HttpPlace> parse_http(std::string_view url);

struct HttpAnswer {
  int status = 0;
  std::string body;
};
// At most 64 KiB. Errors: not_found (no such host), io (nobody answers by the deadline), corrupt (no HTTP).
Result<HttpAnswer> http_get(const HttpPlace& place, const std::vector<std::pair<std::string, std::string>>& headers,
                            NetDeadline deadline);

}  // namespace systole
