#include "ground/net/bearer.h"

#include "ground/base/shown_text.h"
#include "ground/net/socket.h"
#include "ground/net/url.h"

namespace systole {

Status check_bearer_url(const std::string& url) {
  const UrlParts parts(url);
  if (parts.scheme == "https://" || (parts.scheme == "http://" && is_loopback(parts.bare_host()))) return {};
  return error(ErrorKind::invalid, "a token would go to '{}' for everybody on the way to read",
               printable(without_passwords(url)))
      .hinted("https://HOST");
}

}  // namespace systole
