#pragma once
// The loop of an HttpServer, on a thread of its own, and its connections. http_server.cc runs it and accepts;
// http_server_requests.cc reads requests and writes answers.

#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "ground/net/event_loop.h"
#include "ground/net/http_exchange.h"
#include "ground/net/http_gate.h"
#include "ground/net/http_server.h"
#include "ground/net/http_tls.h"

namespace systole {

// One connection, of the loop's thread alone.
struct HttpServer::Connection {
  enum class Phase {
    head,       // between requests, or in the middle of a head
    body,       // in the middle of a body
    answering,  // the handler has the request
    flushing,   // the answer is complete and has not left
    lingering,  // the last answer has left; whatever comes is dropped until the peer closes
  };

  Loop& loop;
  std::string peer;
  HeldLink link;
  HeldEvent timer;
  Phase phase = Phase::head;
  bool has_begun = false;    // the first byte of a request came
  bool input_ended = false;  // the peer sends no more
  bool closes = false;       // after this answer
  bool is_closed = false;
  std::optional<std::list<Connection*>::iterator> idle;
  std::chrono::steady_clock::time_point began;
  std::size_t searched = 0;  // bytes of the head in which its end is not

  HttpRequestHead head;
  HttpServerRequest request;
  const HttpRoute* route = nullptr;
  std::size_t length = 0;  // of its body
  std::shared_ptr<HttpExchange> exchange;
  bool has_head_left = false, is_chunked = false;
  HttpAccess access;

  Connection(Loop& of, std::string from) : loop(of), peer(std::move(from)) {}
  evbuffer* input() const { return bufferevent_get_input(link.get()); }
  evbuffer* output() const { return bufferevent_get_output(link.get()); }
  void put(std::string_view text) { evbuffer_add(output(), text.data(), text.size()); }
  void wait(Seconds time) {
    const timeval until = timeval_of(time);
    event_add(timer.get(), &until);
  }
};

struct HttpServer::Loop {
  using Phase = Connection::Phase;
  static inline const HttpHeaders kLater = {{"Retry-After", "1"}};

  HttpServerOptions options;
  HttpGate gate;
  std::unique_ptr<HttpTls> tls;
  std::shared_ptr<HttpMailbox> mailbox;
  HeldBase base;
  HeldListener listener;
  HeldEvent mail, accepts_again;
  std::unordered_map<Connection*, std::unique_ptr<Connection>> connections;
  std::vector<std::unique_ptr<Connection>> closed;  // until the events of this turn are over
  std::list<Connection*> idle;                      // the longest first
  std::size_t body_bytes = 0;                       // of all requests that are not answered
  std::uint64_t id_seed = 0, id_count = 0;
  bool draining = false, stopping = false;
  std::mutex mutex;
  std::condition_variable fewer;
  std::size_t count = 0;  // of connections; with the next guarded by the mutex
  bool drained = false;
  std::thread thread;

  explicit Loop(HttpServerOptions given)
      : options(std::move(given)), gate(options.routes, options.tokens, options.limits.body) {}

  // --- The loop

  Status begin(int listening);
  void run();
  void take_mail();
  void drain();
  void tell_count();

  // --- Connections

  void accept(int fd, const sockaddr* from, int size);
  // Waits for something that may be given up for a new connection.
  void rest(Connection& c, Seconds time);
  void leave_rest(Connection& c);
  void close(Connection& c);
  static void leave(HttpExchange& exchange);
  // The client left, or is given up.
  void lose(Connection& c);
  void tell_access(Connection& c);

  // --- Requests

  void advance(Connection& c);
  void read_head(Connection& c);
  void look_at_head(Connection& c);
  std::string make_id();
  void read_body(Connection& c);
  void handle(Connection& c);

  // --- Answers

  // Takes what the responders gave since.
  void answer(Connection& c);
  static std::string begin_answer(Connection& c, const HttpResponse& response, std::string framing);
  static std::string stream_head(Connection& c, const HttpResponse& response);
  void put_whole(Connection& c, const HttpResponse& response, std::string_view body);
  void refuse(Connection& c, const HttpFault& fault, const HttpHeaders& headers, bool closes);
  // The answer is complete: nobody has to hear of the client any more.
  void finish(Connection& c);
  void flushed(Connection& c);
  // A socket that is closed with unread bytes resets the connection, and the peer may lose the answer.
  void linger(Connection& c);

  // --- What libevent calls. None throws: there is C in between.

  static void on_accept(evconnlistener*, evutil_socket_t fd, sockaddr* from, int size, void* loop) noexcept;
  // No descriptor is free: the listener would be ready again at once.
  static void on_accept_failed(evconnlistener* listener, void* loop) noexcept;
  static void on_accepts_again(evutil_socket_t, short, void* loop) noexcept;
  static void on_mail(evutil_socket_t, short, void* loop) noexcept;
  static void on_read(bufferevent*, void* connection) noexcept;
  static void on_written(bufferevent*, void* connection) noexcept;
  static void on_output(evbuffer* buffer, const evbuffer_cb_info* info, void* connection) noexcept;
  static void on_end(bufferevent*, short what, void* connection) noexcept;
  static void on_time(evutil_socket_t, short, void* connection) noexcept;
};

}  // namespace systole
