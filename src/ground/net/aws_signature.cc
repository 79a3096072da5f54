#include "ground/net/aws_signature.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <vector>

#include "ground/base/letter_case.h"
#include "ground/net/url.h"

namespace systole {
namespace {

constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256";

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

std::string hmac(std::string_view key, std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned size = 0;
  const unsigned char* done =
      HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char*>(text.data()),
           text.size(), digest.data(), &size);
  if (done == nullptr) fail(error(ErrorKind::internal, "libcrypto: HMAC failed"));
  return {reinterpret_cast<const char*>(digest.data()), size};
}

std::string amz_date(std::chrono::system_clock::time_point now) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  return fmt::format("{:04}{:02}{:02}T{:02}{:02}{:02}Z", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday, utc.tm_hour,
                     utc.tm_min, utc.tm_sec);
}

// The Host that libcurl sends: without a scheme's own port.
std::string host_of(const UrlParts& parts) {
  const bool own =
      (parts.scheme == "http://" && parts.port == ":80") || (parts.scheme == "https://" && parts.port == ":443");
  return lower_case(parts.host) + (own ? "" : parts.port);
}

// "a=1&b=" sorted, from "b&a=1".
std::string canonical_query(std::string_view query) {
  std::vector<std::pair<std::string, std::string>> parts;
  while (!query.empty()) {
    const std::string_view part = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), part.size() + 1));
    const std::size_t equals = std::min(part.find('='), part.size());
    parts.emplace_back(part.substr(0, equals), part.substr(std::min(part.size(), equals + 1)));
  }
  std::ranges::sort(parts);
  std::string text;
  for (const auto& [name, value] : parts) text += fmt::format("{}{}={}", text.empty() ? "" : "&", name, value);
  return text;
}

// Without spaces at its ends, and with one instead of several.
std::string canonical_value(std::string_view value) {
  std::string text;
  for (const char c : value)
    if (c != ' ' || (!text.empty() && text.back() != ' ')) text += c;
  if (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

struct SignedHeaders {
  std::string names, lines;
};

SignedHeaders canonical_headers(const HttpRequest& request, const UrlParts& parts) {
  std::vector<std::pair<std::string, std::string>> headers;
  for (const auto& [name, value] : request.headers) headers.emplace_back(lower_case(name), canonical_value(value));
  if (find_header(headers, "host") == nullptr) headers.emplace_back("host", host_of(parts));
  std::ranges::stable_sort(headers, {}, &std::pair<std::string, std::string>::first);
  SignedHeaders canonical;
  for (const auto& [name, value] : headers) {
    canonical.names += (canonical.names.empty() ? "" : ";") + name;
    canonical.lines += name + ":" + value + "\n";
  }
  return canonical;
}

}  // namespace

std::string payload_hash(std::string_view body) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned size = 0;
  if (EVP_Digest(body.data(), body.size(), digest.data(), &size, EVP_sha256(), nullptr) != 1)
    fail(error(ErrorKind::internal, "libcrypto: SHA-256 failed"));
  return hex({reinterpret_cast<const char*>(digest.data()), size});
}

void sign_aws(HttpRequest& request, const AwsKeys& keys, const AwsScope& scope, std::string_view payload,
              std::chrono::system_clock::time_point now) {
  CHECK(!keys.anonymous(), "a request is signed by nobody");
  const std::string date = amz_date(now), day = date.substr(0, 8);
  request.headers.emplace_back("x-amz-date", date);
  if (!keys.session.empty()) request.headers.emplace_back("x-amz-security-token", keys.session);
  const UrlParts parts(request.url);
  const std::size_t mark = std::min(parts.path.find('?'), parts.path.size());
  const std::string path = mark == 0 ? "/" : parts.path.substr(0, mark);
  const std::string query = canonical_query(std::string_view(parts.path).substr(std::min(parts.path.size(), mark + 1)));
  const SignedHeaders headers = canonical_headers(request, parts);
  const std::string canonical =
      fmt::format("{}\n{}\n{}\n{}\n{}\n{}", request.method, path, query, headers.lines, headers.names, payload);
  const std::string reach = fmt::format("{}/{}/{}/aws4_request", day, scope.region, scope.service);
  const std::string text = fmt::format("{}\n{}\n{}\n{}", kAlgorithm, date, reach, payload_hash(canonical));
  const std::string key =
      hmac(hmac(hmac(hmac("AWS4" + keys.secret, day), scope.region), scope.service), "aws4_request");
  request.headers.emplace_back(
      "Authorization", fmt::format("{} Credential={}/{}, SignedHeaders={}, Signature={}", kAlgorithm, keys.id, reach,
                                   headers.names, hex(hmac(key, text))));
}

}  // namespace systole
