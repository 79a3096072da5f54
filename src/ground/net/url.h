#pragma once
// Splits "https://[USER@]HOST[:PORT]/PATH" in the same way as libcurl.

#include <string>
#include <string_view>

namespace systole {

struct UrlParts {
  std::string scheme;  // "https://"
  std::string user;    // everything before the last '@' of the authority: secret
  std::string host;    // as written, with brackets for [::1]
  std::string port;    // empty, or ":443"
  std::string path;    // the rest
  explicit UrlParts(const std::string& url);
  std::string bare_host() const;  // without brackets
};

// Percent-encodes all but letters, digits and "-._~" (and '/', if kept), as AWS and Google's APIs read it.
std::string url_encoded(std::string_view text, bool keeps_slash = false);

}  // namespace systole
