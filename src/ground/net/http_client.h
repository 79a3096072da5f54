#pragma once
// HTTP and HTTPS client with server and client certificates, bodies of any length and streamed responses. Uses libcurl,
// which is loaded with the first client. Server certificates are checked against the system's authorities or the given
// ones, unless checks_certificate is false; redirects are not followed; the environment's proxy is used, except for
// this machine itself.

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "ground/base/result.h"
#include "ground/base/units.h"
#include "ground/net/http_headers.h"

namespace systole {

// PEM, in memory or in a file; the text wins if not empty.
struct PemText {
  std::string text, file;
  bool empty() const { return text.empty() && file.empty(); }
};

struct HttpTrust {
  PemText authorities;             // empty: those of the system
  PemText certificate, key;        // client certificate; empty: none
  std::string server_name;         // the name that the server's certificate must have; empty: the URL's host
  std::string proxy;               // empty: the environment's
  bool checks_certificate = true;  // false: any server is trusted
};

struct HttpRequest {
  std::string method = "GET", url;
  HttpHeaders headers = {};
  std::string body = {};
  std::string_view borrowed_body = {};  // instead of `body`, if that is empty: not copied
  bool bulk = false;                    // large buffers, for bodies of many MiB
  bool once = false;                    // not sent again unseen if a connection that was kept open is lost
  Seconds timeout{30.0};                // for the whole request; 0: none, for streams
  Seconds connect_timeout{5.0};
  Seconds idle{0.0};                    // gives up after this time without a byte; 0: never
  Bytes most{std::int64_t{256} << 20};  // limit of the body, if there is no `take`
  // Receives the body of a 2xx response piecewise; returning false ends the request, which is not an error.
  std::function<bool(std::string_view piece)> take = {};
  // Polled at least once a second; returning true ends the request, which is not an error.
  std::function<bool()> cancelled = {};
};

struct HttpReply {
  int status = 0;
  HttpHeaders headers;  // names in lower case
  std::string body;     // without the pieces that `take` received
  bool ended = false;   // ended early by `take` or `cancelled`
  const std::string* header(std::string_view name) const { return find_header(headers, name); }  // or null
};

// Keeps its connection open between requests. One thread at a time.
class HttpClient {
 public:
  // Errors: unsupported (libcurl is not installed).
  static Result<std::unique_ptr<HttpClient>> open(HttpTrust trust);
  ~HttpClient();
  // Errors: io (no response, or an incomplete one, within the time); invalid (a malformed URL, or an invalid
  // certificate); does_not_fit (a body beyond `most`). HTTP error statuses are not errors.
  Result<HttpReply> send(const HttpRequest& request);

 private:
  struct State;
  explicit HttpClient(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace systole
