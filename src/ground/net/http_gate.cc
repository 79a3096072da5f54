#include "ground/net/http_gate.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "ground/base/letter_case.h"

namespace systole {

HttpGate::HttpGate(std::vector<HttpRoute> routes, const std::vector<std::string>& tokens, Bytes most_body)
    : routes_(std::move(routes)), most_body_(most_body) {
  for (const std::string& token : tokens) tokens_.push_back(digest_of(token));
}

HttpGate::Digest HttpGate::digest_of(std::string_view token) {
  Digest digest{};
  unsigned size = 0;
  CHECK(EVP_Digest(token.data(), token.size(), digest.data(), &size, EVP_sha256(), nullptr) == 1, "libcrypto: SHA-256");
  return digest;
}

// The time depends on neither the tokens nor which of them is shown: digests have one length, and all are compared.
bool HttpGate::shows_token(const HttpRequestHead& head) const {
  constexpr std::string_view kScheme = "bearer ";
  const std::string* shown = head.header("authorization");
  if (shown == nullptr || lower_case(shown->substr(0, kScheme.size())) != kScheme) return false;
  const Digest digest = digest_of(std::string_view(*shown).substr(kScheme.size()));
  int same = 0;
  for (const Digest& token : tokens_) same |= CRYPTO_memcmp(token.data(), digest.data(), digest.size()) == 0 ? 1 : 0;
  return same != 0;
}

HttpAdmission HttpGate::look_at(const HttpRequestHead& head) const {
  const std::string_view method = head.method == "HEAD" ? "GET" : std::string_view(head.method);
  HttpAdmission found;
  std::string allowed;
  bool needs_token = !tokens_.empty();  // what does not exist is not told either
  for (const HttpRoute& route : routes_) {
    std::optional<HttpHeaders> parameters = match_path(route.pattern, head.path);
    if (!parameters) continue;
    needs_token = !tokens_.empty() && route.needs_token;
    allowed += (allowed.empty() ? "" : ", ") + route.method + (route.method == "GET" ? ", HEAD" : "");
    if (route.method != method) continue;
    found.route = &route;
    found.parameters = *std::move(parameters);
    break;
  }
  const auto refused = [](int status, std::string why, HttpHeaders headers = {}) {
    return HttpAdmission{nullptr, {}, {status, std::move(why)}, std::move(headers)};
  };
  if (needs_token && !shows_token(head))
    return refused(401, "a valid token is needed: Authorization: Bearer TOKEN", {{"WWW-Authenticate", "Bearer"}});
  if (allowed.empty()) return refused(404, fmt::format("there is no {}", head.path));
  if (found.route == nullptr) return refused(405, fmt::format("{} takes {}", head.path, allowed), {{"Allow", allowed}});
  const bool has_body = method == "POST" || method == "PUT" || method == "PATCH";
  if (head.has_coding || (has_body && !head.length))
    return refused(411, "a request needs the length of its body: Content-Length");
  if (head.length.value_or(0) > static_cast<std::uint64_t>(most_body_.count()))
    return refused(413, fmt::format("the body of a request has at most {}", to_string(most_body_)));
  return found;
}

}  // namespace systole
