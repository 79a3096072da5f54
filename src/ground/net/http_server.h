#pragma once
// An HTTP/1.1 server: one thread with an event loop (libevent) carries all connections, so that an open stream costs a
// few kilobytes and no thread. Handlers run on that thread and must be quick: whatever takes time is answered later,
// from any thread, through the HttpResponder.
//
// Everything that a client can make grow or last has a limit (HttpServerLimits), and every limit a status: 408 (too
// slow), 413 (body), 414 (target), 431 (headers), 503 (connections). A body needs its Content-Length (411). Requests of
// one connection are answered in turn, the next one only after the answer to the one before has left. A client that
// closes its side, or only its sending half, has left.
//
// Of libevent only the loop and its buffers serve here, not its evhttp: that stops reading while a request is answered,
// and so notices a lost client only when it writes; its deadlines begin anew with each byte; its errors are HTML pages.

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/result.h"
#include "ground/base/units.h"
#include "ground/net/http_record.h"
#include "ground/net/http_request_head.h"
#include "ground/net/http_response.h"
#include "ground/net/socket.h"

namespace systole {

struct HttpServerRequest {
  std::string method;       // a HEAD request comes to the handler of GET, as HEAD; its body is not sent
  std::string path, query;  // as sent
  HttpHeaders headers;      // names in lower case
  HttpHeaders parameters;   // of the route's pattern, decoded
  std::string body;
  std::string id;    // the client's X-Request-Id, if it is one, or ours
  std::string peer;  // its numeric address
  const std::string* header(std::string_view name) const { return find_header(headers, name); }
  const std::string& parameter(std::string_view name) const;  // REQUIRES: the pattern has it
};

enum class StreamWrite {
  taken,
  full,  // nothing of it was taken: the client reads too slowly
  gone,  // nobody reads any more: the client left, or the answer is complete
};

struct HttpExchange;  // http_exchange.h

// The answer to one request, from any thread; copies are the same answer. It outlives the client and the server: what
// nobody can receive is dropped. If the last copy goes without a whole answer, the client gets status 500, or a stream
// that is cut.
class HttpResponder {
 public:
  // The whole answer. Only the first call of send or begin counts.
  void send(HttpResponse response);
  // The head of an answer whose body follows piece by piece; `body` is its first piece.
  void begin(HttpResponse head);
  // Never blocks; the pieces of different threads are not mixed. All that was taken and has not left for the network
  // may have at most `stream_buffer` bytes. REQUIRES: begin was called.
  StreamWrite write(std::string_view piece);
  void end();  // all pieces were written

  bool is_gone() const;          // the client left, or the server stopped, before the answer was complete
  std::size_t buffered() const;  // bytes of the body that were taken and have not left for the network
  // Calls this once when the client leaves before it has the answer: on the server's thread, or here if it has left.
  // It must be quick, and hold no copy of the responder. An answer that is complete lets go of it.
  void when_gone(std::function<void()> leave);
  HttpRecord& record() const;  // of the request; lives as long as a copy of the responder

 private:
  friend class HttpServer;
  struct Promise;
  explicit HttpResponder(std::shared_ptr<HttpExchange> exchange);
  std::shared_ptr<Promise> promise_;
};

using HttpHandler = std::function<void(HttpServerRequest request, HttpResponder responder)>;

struct HttpRoute {
  std::string method, pattern;  // "GET", "/v1/models/{model}" (match_path)
  HttpHandler handler;
  bool needs_token = true;  // if there are tokens
};

struct HttpServerLimits {
  HttpHeadLimits head = {};
  Bytes body = kMiB * 16;
  Bytes bodies = kMiB * 256;  // of all requests that are not answered
  Bytes stream_buffer = kMiB;
  std::size_t connections = 4096;  // one more closes the one that has been idle for longest, or is refused
  Seconds head_time{10.0};         // from its first byte to its last; of a new connection, TLS included
  Seconds body_time{60.0};         // the same of the body
  Seconds idle_time{75.0};         // between requests
  Seconds write_time{30.0};        // without a byte that the client takes
};

// What happened to a request; no part of its query, headers or body.
struct HttpAccess {
  std::string peer, id;
  std::string method, path;                       // empty if it was not understood
  int status = 0;                                 // 499: the client left before there was one
  Bytes sent{};                                   // of the body
  Seconds time{};                                 // from the request's first byte
  bool gone = false;                              // the client left before it had the answer
  std::string failure = {};                       // what the handler threw
  std::shared_ptr<const HttpRecord> record = {};  // it has ended, and its parts are `time`
};

struct HttpServerOptions {
  NetAddress bind = {};  // loopback, any free port
  std::vector<HttpRoute> routes = {};
  // Requests show one as "Authorization: Bearer TOKEN". Without any, all are served.
  std::vector<std::string> tokens = {};
  std::string certificate = {}, key = {};  // PEM files, the certificate with its chain; empty: no TLS
  HttpServerLimits limits = {};
  std::function<HttpResponse(const HttpFault&)> error = openai_error;  // on the server's thread
  std::function<void(const HttpAccess&)> access = {};                  // on the server's thread
};

class HttpServer {
 public:
  // Returns when it is listening. Errors: not_found (no such host or file), busy (the port is in use), unsupported (no
  // TLS here), io; invalid: files that hold no certificate and its key, a key that others may read, or routes that
  // need a token, none given, and an address that other machines reach.
  static Result<std::unique_ptr<HttpServer>> start(HttpServerOptions options);
  ~HttpServer();  // closes every connection; then no handler or callback runs. Not from a handler
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  NetAddress address() const { return address_; }  // with the actual port
  std::size_t connections() const;
  // Accepts nobody more and closes what is idle; true once all that was begun is answered, false at the deadline. Not
  // from a handler.
  bool drain(NetDeadline deadline);

 private:
  struct Connection;
  struct Loop;
  HttpServer() = default;

  NetAddress address_;
  std::unique_ptr<Loop> loop_;
};

}  // namespace systole
