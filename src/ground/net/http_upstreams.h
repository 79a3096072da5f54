#pragma once
// Requests to other HTTP servers, many at once, for a proxy: one thread with an event loop (libevent) carries them all,
// and gives each reply piece by piece, without holding it. HttpClient is for those who wait for one reply.
//
// Each request has a connection of its own, without TLS, to a numeric address: servers of this machine.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "ground/base/result.h"
#include "ground/base/units.h"
#include "ground/net/http_reply_reader.h"
#include "ground/net/socket.h"

namespace systole {

struct HttpUpstreamRequest {
  NetAddress to;
  std::string method = "GET", target = "/";
  HttpHeaders headers = {};  // those of the host, the length and the connection are added
  std::shared_ptr<const std::string> body = {};
  Seconds timeout{0.0};  // for all of it; 0: none
};

// Takes one reply. All calls come from the loop's thread and must be quick.
class HttpReplySink {
 public:
  virtual ~HttpReplySink() = default;
  virtual void begin(const HttpReplyHead& head) = 0;
  virtual Status take(std::string piece) = 0;  // of the body. An error closes the connection, and is what ends it
  // Last, once. Errors, which do not say whose reply it is: io: nobody accepts the connection, no reply, one that is
  // malformed or was cut, or the time is over; busy: this process can make no connection (no descriptor or port is
  // free), which says nothing of the server.
  virtual void end(const Status& how) = 0;
};

class HttpUpstreams {
 public:
  static Result<std::unique_ptr<HttpUpstreams>> start();  // Errors: io
  ~HttpUpstreams();                                       // drops all that is under way; its sinks hear no more
  HttpUpstreams(const HttpUpstreams&) = delete;
  HttpUpstreams& operator=(const HttpUpstreams&) = delete;

  // From any thread; never blocks. Returns the request's number.
  std::uint64_t send(HttpUpstreamRequest request, std::shared_ptr<HttpReplySink> sink);
  // Closes the connection: the server takes it as a client that left. The sink hears no more, but for a call that is
  // under way. Fine if the request has ended.
  void cancel(std::uint64_t request);

 private:
  struct Link;
  struct Loop;
  HttpUpstreams() = default;
  std::unique_ptr<Loop> loop_;
};

}  // namespace systole
