#pragma once
// Requests over HTTP and HTTPS, with certificates of both sides, bodies of any length and answers that are read as they
// come. libcurl does it, loaded when the first client is made. Certificates are always checked, by the system's
// authorities or by those given; redirects are not followed; a proxy of the environment is used, but not for this
// machine itself.

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ground/base/result.h"
#include "ground/base/units.h"

namespace systole {

// PEM, in memory or in a file; the text counts where there is one.
struct PemText {
  std::string text, file;
  bool empty() const { return text.empty() && file.empty(); }
};

struct HttpTrust {
  PemText authorities;             // empty: those of the system
  PemText certificate, key;        // by which we are known; empty: none
  std::string server_name;         // that the server's certificate must bear; empty: the URL's host
  std::string proxy;               // empty: the environment's
  bool checks_certificate = true;  // false: whoever answers is believed
};

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method = "GET", url;
  HttpHeaders headers = {};
  std::string body = {};
  Seconds timeout{30.0};  // of all of it; 0: none, for what is read as it comes
  Seconds connect_timeout{5.0};
  Seconds idle{0.0};                    // without a byte for so long it is given up; 0: never
  Bytes most{std::int64_t{256} << 20};  // of the body, where no one takes it piece by piece
  // Takes the body of an answer 2xx as it comes; false ends the request, which is no error.
  std::function<bool(std::string_view piece)> take = {};
  // Asked at least once a second; true ends the request, which is no error.
  std::function<bool()> cancelled = {};
};

struct HttpReply {
  int status = 0;
  HttpHeaders headers;  // names in lower case
  std::string body;     // without what was taken
  bool ended = false;   // by `take` or `cancelled`, before its end
  // The value of a header, or null.
  const std::string* header(std::string_view name) const;
};

// Keeps its connection from one request to the next. One thread at a time.
class HttpClient {
 public:
  // Errors: unsupported, there is no libcurl here.
  static Result<std::unique_ptr<HttpClient>> open(HttpTrust trust);
  ~HttpClient();
  // Errors: io, nobody answers, or not to the end, within the time; invalid, a URL that is none, or a certificate that
  // does not hold; does_not_fit, a body beyond `most`. A status is no error, whatever it is.
  Result<HttpReply> send(const HttpRequest& request);

 private:
  struct State;
  explicit HttpClient(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace systole
