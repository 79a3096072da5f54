#pragma once
// The parts of an address "https://[USER@]HOST[:PORT]/PATH", as libcurl takes it apart.

#include <string>

namespace systole {

struct UrlParts {
  std::string scheme;  // "https://"
  std::string user;    // what stands before the last '@' of the place: secret
  std::string host;    // as it stands, [::1] too
  std::string port;    // empty, or ":443"
  std::string path;    // all behind
  explicit UrlParts(const std::string& url);
  std::string bare_host() const;  // without brackets
};

}  // namespace systole
