#pragma once
// GET of one small document over plain HTTP, as from metadata servers: no redirects, no persistent connection.

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
// At most 64 KiB. Errors: not_found (no such host), io (no answer by the deadline), corrupt (not HTTP).
Result<HttpAnswer> http_get(const HttpPlace& place, const std::vector<std::pair<std::string, std::string>>& headers,
                            NetDeadline deadline);

}  // namespace systole
