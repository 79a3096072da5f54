#pragma once
// The head of an HTTP/1.x request (RFC 9112): request line and header fields, up to the empty line. Parsing is strict,
// because two parsers that read one message differently let requests be smuggled past a proxy: lines end in CRLF,
// nothing is folded, names and values have their characters, and what gives the length of the body stands there once.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "ground/net/http_headers.h"

namespace systole {

struct HttpHeadLimits {
  std::size_t target = std::size_t{8} << 10;  // bytes of the request's target
  std::size_t head = std::size_t{32} << 10;   // bytes of all
  std::size_t headers = 100;
};

// Why a request is refused.
struct HttpFault {
  int status = 400;
  std::string message;
};

struct HttpRequestHead {
  std::string method;
  std::string path, query;              // as sent: still percent-encoded; `query` is without its '?'
  HttpHeaders headers;                  // names in lower case; values are UTF-8
  std::optional<std::uint64_t> length;  // Content-Length
  bool has_coding = false;              // Transfer-Encoding: the length of the body is not known ahead
  bool keeps_alive = false;             // the connection may serve another request
  bool expects_continue = false;        // the client waits for 100 before it sends the body
  bool is_1_0 = false;                  // of HTTP/1.0, which has no chunks
  const std::string* header(std::string_view name) const { return find_header(headers, name); }
};

// `text` ends in the empty line. A fault has status 400, 414, 431 or 505.
std::variant<HttpRequestHead, HttpFault> parse_request_head(std::string_view text, const HttpHeadLimits& limits);
// The header fields of a head, names in lower case; `text` is what follows its first line, and ends in the empty line. A
// fault has status 400 or 431.
std::optional<HttpFault> read_header_fields(std::string_view text, const HttpHeadLimits& limits, HttpHeaders& headers);
// The fault of a head that exceeds `limits.head` bytes, of which these are the first.
HttpFault head_too_large(std::string_view begin, const HttpHeadLimits& limits);

// Whether a header field may be sent: its name is a token and its value has no control character.
bool is_header(std::string_view name, std::string_view value);

// Without its percent-encoding; nothing if that is malformed or the result has control characters or is not UTF-8.
std::optional<std::string> percent_decoded(std::string_view text);

// The parameters of `path` (as sent) by the names that `pattern` gives them, decoded: of "/models/{model}", one segment;
// of "/models/{model*}", all that follow. Nothing if the path does not match.
std::optional<HttpHeaders> match_path(std::string_view pattern, std::string_view path);

}  // namespace systole
