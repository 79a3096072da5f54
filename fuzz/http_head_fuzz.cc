// The head of an HTTP request (ground/net): whatever bytes arrive, parsing ends in a fault, or in a head that, written
// out again, parses to the same; and every path matches a pattern in one way.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <variant>

#include "ground/net/http_request_head.h"

namespace {

using namespace systole;

void require(bool holds) {
  if (!holds) std::abort();
}

std::string written(const HttpRequestHead& head) {
  std::string text = head.method + " " + head.path + (head.query.empty() ? "" : "?" + head.query);
  text += head.is_1_0 ? " HTTP/1.0\r\n" : " HTTP/1.1\r\n";
  for (const auto& [name, value] : head.headers) {
    require(is_header(name, value));
    text += name + ": " + value + "\r\n";
  }
  return text + "\r\n";
}

void check_head(std::string_view text) {
  const HttpHeadLimits limits{.target = 200, .head = 1000, .headers = 10};
  const std::variant<HttpRequestHead, HttpFault> parsed = parse_request_head(text, limits);
  if (const HttpFault* fault = std::get_if<HttpFault>(&parsed)) {
    require(fault->status == 400 || fault->status == 414 || fault->status == 431 || fault->status == 505);
    require(!fault->message.empty());
    return;
  }
  const HttpRequestHead& head = std::get<HttpRequestHead>(parsed);
  require(head.path.starts_with('/') && head.headers.size() <= limits.headers);
  require(!(head.length && head.has_coding));
  const HttpRequestHead again = std::get<HttpRequestHead>(parse_request_head(written(head), {}));
  require(again.method == head.method && again.path == head.path && again.query == head.query);
  require(again.headers == head.headers && again.length == head.length && again.keeps_alive == head.keeps_alive);
}

void check_path(std::string_view path) {
  for (const char* pattern : {"/", "/v1/models", "/v1/{a}", "/v1/{a}/b/{c}", "/{all*}"})
    if (const std::optional<HttpHeaders> found = match_path(pattern, path))
      for (const auto& [name, value] : *found) require(!name.empty() && !value.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_head(text);
  check_path(text);
  head_too_large(text, {});
  return 0;
}
