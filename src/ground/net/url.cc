#include "ground/net/url.h"

#include <algorithm>

#include "ground/base/result.h"

namespace systole {

UrlParts::UrlParts(const std::string& url) {
  const std::size_t begin = std::min(url.find("://"), url.size()), at = std::min(begin + 3, url.size());
  scheme = url.substr(0, at);
  std::string place = url.substr(at, url.find_first_of("/?#", at) - at);
  path = url.substr(at + place.size());
  if (const std::size_t end = place.rfind('@'); end != place.npos) {
    user = place.substr(0, end);
    place.erase(0, end + 1);
  }
  const std::size_t colon = place.find(':', place.starts_with('[') ? place.find(']') : 0);
  host = place.substr(0, colon);
  if (colon != place.npos) port = place.substr(colon);
}

std::string UrlParts::bare_host() const {
  return host.starts_with('[') && host.ends_with(']') ? host.substr(1, host.size() - 2) : host;
}

std::string url_encoded(std::string_view text, bool keeps_slash) {
  constexpr std::string_view kPlain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
  std::string encoded;
  for (const char c : text) {
    if (kPlain.find(c) != kPlain.npos || (keeps_slash && c == '/')) {
      encoded += c;
    } else {
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

}  // namespace systole
