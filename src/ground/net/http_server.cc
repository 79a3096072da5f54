#include "ground/net/http_server.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <condition_variable>
#include <ctime>
#include <list>
#include <random>
#include <thread>
#include <unordered_map>

#include "ground/net/event_loop.h"
#include "ground/net/http_exchange.h"
#include "ground/net/http_gate.h"
#include "ground/net/http_tls.h"

namespace systole {
namespace {

using std::chrono::steady_clock;

constexpr Seconds kLingers(1.0);       // for the peer to read the answer that ends its connection
constexpr Seconds kAcceptsAgain(0.1);  // after descriptors ran out
// Of the requests behind the one that is answered. Who sends more is not read until its answer has left, and is missed
// only when something is written.
constexpr std::size_t kReadAhead = std::size_t{64} << 10;
constexpr std::size_t kMostRefused = 64, kMostId = 128;
constexpr int kLeft = 499;
const HttpHeaders kLater = {{"Retry-After", "1"}};

bool is_request_id(std::string_view text) {
  return !text.empty() && text.size() <= kMostId && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
  });
}

std::size_t size_of(Bytes bytes) { return static_cast<std::size_t>(bytes.count()); }

std::string numeric_address(const sockaddr* address, int size) {
  char host[NI_MAXHOST] = "";
  ::getnameinfo(address, static_cast<socklen_t>(size), host, sizeof host, nullptr, 0, NI_NUMERICHOST);
  return host;
}

// Small pieces leave at once, and a peer that vanished without a word is found within a minute.
void set_options(int fd) {
  const auto set = [fd](int level, int option, int value) { ::setsockopt(fd, level, option, &value, sizeof value); };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 30);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 10);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
}

}  // namespace

const std::string& HttpServerRequest::parameter(std::string_view name) const {
  const std::string* value = find_header(parameters, name);
  CHECK(value != nullptr, "the route has no parameter '{}'", name);
  return *value;
}

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
  steady_clock::time_point began;
  std::size_t searched = 0;  // bytes of the head in which its end is not

  HttpRequestHead head;
  HttpServerRequest request;
  const HttpRoute* route = nullptr;
  std::size_t length = 0;  // of its body
  std::shared_ptr<HttpExchange> exchange;
  bool has_head_left = false, is_chunked = false;
  HttpAccess access;
  std::shared_ptr<HttpRecord> record;  // of the request; null until its head is there

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
  void run() {
    block_sigpipe();
    while (!stopping) {
      event_base_loop(base.get(), EVLOOP_ONCE);
      closed.clear();
    }
    mailbox->close();
    listener.reset();
    while (!connections.empty()) lose(*connections.begin()->second);
    closed.clear();
    event_base_loop(base.get(), EVLOOP_NONBLOCK);  // libevent frees a connection in a turn of its own
  }
  void take_mail() {
    const HttpMailbox::Mail taken = mailbox->take();
    stopping = stopping || taken.stop;
    for (const std::shared_ptr<HttpExchange>& exchange : taken.exchanges)
      if (exchange->connection != nullptr) answer(*static_cast<Connection*>(exchange->connection));
    if (taken.drain && !draining) drain();
  }
  void drain() {
    draining = true;
    listener.reset();
    std::vector<Connection*> unused;
    for (auto& [connection, held] : connections) {
      connection->closes = true;
      if (connection->phase == Phase::head && !connection->has_begun) unused.push_back(connection);
    }
    for (Connection* connection : unused) close(*connection);
    tell_count();
  }
  void tell_count() {
    {
      const std::lock_guard lock(mutex);
      count = connections.size();
      drained = draining && count == 0;
    }
    fewer.notify_all();
  }

  // --- Connections

  void accept(int fd, const sockaddr* from, int size) {
    while (connections.size() >= options.limits.connections && !idle.empty()) close(*idle.front());
    const bool is_full = connections.size() >= options.limits.connections;
    if (connections.size() >= options.limits.connections + kMostRefused) {
      ::close(fd);
      return;
    }
    set_options(fd);
    auto held = std::make_unique<Connection>(*this, numeric_address(from, size));
    Connection& c = *held;
    c.link.reset(tls != nullptr ? tls->accept(base.get(), fd)
                                : made(bufferevent_socket_new(base.get(), fd, BEV_OPT_CLOSE_ON_FREE)));
    c.timer.reset(made(event_new(base.get(), -1, 0, &on_time, &c)));
    bufferevent_setcb(c.link.get(), &on_read, &on_written, &on_end, &c);
    evbuffer_add_cb(c.output(), &on_output, &c);
    connections.emplace(&c, std::move(held));
    tell_count();
    bufferevent_enable(c.link.get(), EV_READ | EV_WRITE);
    c.began = steady_clock::now();
    if (is_full) return refuse(c, {503, "the server has as many connections as it takes"}, kLater, true);
    rest(c, options.limits.head_time);
  }
  // Waits for something that may be given up for a new connection.
  void rest(Connection& c, Seconds time) {
    c.wait(time);
    if (!c.idle) c.idle = idle.insert(idle.end(), &c);
  }
  void leave_rest(Connection& c) {
    if (c.idle) idle.erase(*c.idle);
    c.idle.reset();
  }
  void close(Connection& c) {
    if (std::exchange(c.is_closed, true)) return;
    leave_rest(c);
    body_bytes -= std::exchange(c.length, 0);
    bufferevent_disable(c.link.get(), EV_READ | EV_WRITE);
    bufferevent_setcb(c.link.get(), nullptr, nullptr, nullptr, nullptr);
    evbuffer_remove_cb(c.output(), &on_output, &c);
    event_del(c.timer.get());
    if (c.exchange != nullptr) leave(*c.exchange);
    const auto found = connections.find(&c);
    closed.push_back(std::move(found->second));
    connections.erase(found);
    tell_count();
  }
  static void leave(HttpExchange& exchange) {
    exchange.connection = nullptr;
    std::function<void()> told;
    std::string dropped;
    {
      const std::lock_guard lock(exchange.mutex);
      exchange.gone = true;
      exchange.leaving = 0;
      exchange.body.swap(dropped);
      exchange.leave.swap(told);
    }
    if (told) told();
  }
  // The client left, or is given up.
  void lose(Connection& c) {
    if (c.is_closed) return;
    if (c.phase == Phase::body || c.phase == Phase::answering || c.phase == Phase::flushing) {
      c.access.gone = true;
      if (!c.has_head_left) c.access.status = kLeft;
      const auto kept = static_cast<std::int64_t>(evbuffer_get_length(c.output()));
      c.access.sent = std::max(c.access.sent - Bytes(kept), Bytes(0));
      tell_access(c);
    }
    close(c);
  }
  void tell_access(Connection& c) {
    const steady_clock::time_point now = steady_clock::now();
    c.access.time = Seconds(std::chrono::duration<double>(now - c.began).count());
    c.record->end(now);
    c.access.record = c.record;
    if (options.access) options.access(c.access);
  }

  // --- Requests

  void advance(Connection& c) {
    switch (c.phase) {
      case Phase::head: read_head(c); return;
      case Phase::body: read_body(c); return;
      case Phase::lingering: evbuffer_drain(c.input(), evbuffer_get_length(c.input())); return;
      case Phase::answering:
      case Phase::flushing: return;
    }
  }
  void read_head(Connection& c) {
    evbuffer* const input = c.input();
    const std::size_t size = evbuffer_get_length(input), most = options.limits.head.head;
    if (size == 0) return c.input_ended ? close(c) : void();
    if (!std::exchange(c.has_begun, true)) {
      c.began = steady_clock::now();
      c.wait(options.limits.head_time);
    }
    evbuffer_ptr from;
    evbuffer_ptr_set(input, &from, c.searched, EVBUFFER_PTR_SET);
    const evbuffer_ptr found = evbuffer_search(input, "\r\n\r\n", 4, &from);
    const std::size_t length = found.pos < 0 ? size : static_cast<std::size_t>(found.pos) + 4;
    if (length > most) return refuse(c, head_too_large(front_of(input, most), options.limits.head), {}, true);
    if (found.pos < 0) {
      c.searched = size - std::min(size, std::size_t{3});
      const char first = front_of(input, 1).front();
      if (first < 'A' || first > 'Z') return refuse(c, {400, "this is no HTTP request"}, {}, true);
      if (c.input_ended) close(c);
      return;
    }
    std::variant<HttpRequestHead, HttpFault> parsed = parse_request_head(front_of(input, length), options.limits.head);
    evbuffer_drain(input, length);
    c.searched = 0;
    if (const HttpFault* fault = std::get_if<HttpFault>(&parsed)) return refuse(c, *fault, {}, true);
    c.head = std::get<HttpRequestHead>(std::move(parsed));
    look_at_head(c);
  }
  void look_at_head(Connection& c) {
    HttpRequestHead& head = c.head;
    leave_rest(c);
    c.record = std::make_shared<HttpRecord>(c.began);
    const std::string* named = head.header("x-request-id");
    c.access = {.peer = c.peer,
                .id = named != nullptr && is_request_id(*named) ? *named : make_id(),
                .method = head.method,
                .path = head.path};
    c.closes = draining || !head.keeps_alive;
    const bool has_body = head.has_coding || head.length.value_or(0) > 0;
    HttpAdmission admission = gate.look_at(head);
    if (admission.route == nullptr) return refuse(c, admission.fault, admission.headers, has_body);
    const auto length = static_cast<std::size_t>(head.length.value_or(0));
    if (body_bytes + length > size_of(options.limits.bodies))
      return refuse(c, {503, "the server holds as many requests as it takes"}, kLater, has_body);
    body_bytes += c.length = length;
    c.route = admission.route;
    c.request = {.method = head.method,
                 .path = std::move(head.path),
                 .query = std::move(head.query),
                 .headers = std::move(head.headers),
                 .parameters = std::move(admission.parameters),
                 .id = c.access.id,
                 .peer = c.peer};
    c.phase = Phase::body;
    c.wait(options.limits.body_time);
    if (head.expects_continue && length > 0 && evbuffer_get_length(c.input()) == 0)
      c.put("HTTP/1.1 100 Continue\r\n\r\n");
    read_body(c);
  }
  std::string make_id() { return fmt::format("req_{:016x}{:08x}", id_seed, ++id_count); }
  void read_body(Connection& c) {
    std::string& body = c.request.body;
    const std::size_t before = body.size(), some = std::min(evbuffer_get_length(c.input()), c.length - before);
    body.resize(before + some);
    evbuffer_remove(c.input(), body.data() + before, some);
    if (body.size() == c.length) return handle(c);
    if (c.input_ended) lose(c);
  }
  void handle(Connection& c) {
    c.phase = Phase::answering;
    event_del(c.timer.get());
    c.exchange = std::make_shared<HttpExchange>();
    c.exchange->mailbox = mailbox;
    c.exchange->most = size_of(options.limits.stream_buffer);
    c.exchange->is_head_request = c.head.method == "HEAD";
    c.exchange->connection = &c;
    c.exchange->record = c.record;
    c.record->enter(HttpRecord::kHandle);
    try {
      c.route->handler(std::move(c.request), HttpResponder(c.exchange));
    } catch (const std::exception& thrown) { c.access.failure = thrown.what(); }
    c.request = {};
    answer(c);
    if (c.input_ended && c.phase == Phase::answering) lose(c);
  }

  // --- Answers

  // Takes what the responders gave since.
  void answer(Connection& c) {
    if (c.phase != Phase::answering) return;
    HttpExchange& exchange = *c.exchange;
    std::optional<HttpResponse> head;
    std::string body;
    HttpExchange::Phase phase{};
    {
      const std::lock_guard lock(exchange.mutex);
      exchange.posted = false;
      head.swap(exchange.head);
      body.swap(exchange.body);
      exchange.leaving += body.size();
      phase = exchange.phase;
    }
    if (head && !exchange.is_streamed) return put_whole(c, *head, body);
    if (phase == HttpExchange::Phase::cut && !head && !c.has_head_left) {
      if (c.access.failure.empty()) c.access.failure = "the handler gave no answer";
      return refuse(c, {500, "the server failed"}, {}, false);
    }
    std::string text = head ? stream_head(c, *head) : std::string();
    if (exchange.is_head_request) body.clear();
    c.access.sent += Bytes(static_cast<std::int64_t>(body.size()));
    const bool is_whole = phase == HttpExchange::Phase::whole;
    if (c.is_chunked && !body.empty()) body = fmt::format("{:x}\r\n{}\r\n", body.size(), body);
    c.put(text + body + (c.is_chunked && is_whole ? "0\r\n\r\n" : ""));
    if (is_whole) {
      finish(c);
    } else if (phase == HttpExchange::Phase::cut) {
      lose(c);
    }
  }
  static std::string begin_answer(Connection& c, const HttpResponse& response, std::string framing) {
    if (c.closes) framing += "Connection: close\r\n";
    c.access.status = response.status;
    c.has_head_left = true;
    return head_text(response, c.access.id, framing, std::time(nullptr));
  }
  static std::string stream_head(Connection& c, const HttpResponse& response) {
    c.is_chunked = !c.head.is_1_0 && c.head.method != "HEAD";
    return begin_answer(c, response, c.head.is_1_0 ? "" : "Transfer-Encoding: chunked\r\n");
  }
  void put_whole(Connection& c, const HttpResponse& response, std::string_view body) {
    const bool has_none = response.status == 204 || response.status == 304;
    const std::string head =
        begin_answer(c, response, has_none ? "" : fmt::format("Content-Length: {}\r\n", body.size()));
    if (has_none || c.head.method == "HEAD") body = {};
    c.access.sent += Bytes(static_cast<std::int64_t>(body.size()));
    c.put(head);
    c.put(body);
    finish(c);
  }
  void refuse(Connection& c, const HttpFault& fault, const HttpHeaders& headers, bool closes) {
    leave_rest(c);
    event_del(c.timer.get());
    c.phase = Phase::answering;
    c.closes = c.closes || closes || draining;
    if (c.record == nullptr) c.record = std::make_shared<HttpRecord>(c.began);
    c.record->enter(HttpRecord::kSend);
    c.access.peer = c.peer;
    if (c.access.id.empty()) c.access.id = make_id();
    HttpResponse response = options.error(fault);
    response.headers.insert(response.headers.end(), headers.begin(), headers.end());
    put_whole(c, response, response.body);
  }
  // The answer is complete: nobody has to hear of the client any more.
  void finish(Connection& c) {
    c.phase = Phase::flushing;
    if (c.exchange != nullptr) {
      std::function<void()> dropped;
      const std::lock_guard lock(c.exchange->mutex);
      c.exchange->leave.swap(dropped);
    }
    if (evbuffer_get_length(c.output()) == 0) flushed(c);  // a stream without chunks ends in no byte
  }
  void flushed(Connection& c) {
    event_del(c.timer.get());
    if (!c.input_ended) bufferevent_enable(c.link.get(), EV_READ);
    tell_access(c);
    body_bytes -= std::exchange(c.length, 0);
    if (c.exchange != nullptr) std::exchange(c.exchange, nullptr)->connection = nullptr;
    c.access = {};
    c.record = nullptr;
    c.head = {};
    c.has_begun = c.has_head_left = c.is_chunked = false;
    if (c.closes) return linger(c);
    c.phase = Phase::head;
    rest(c, options.limits.idle_time);
    advance(c);
  }
  // A socket that is closed with unread bytes resets the connection, and the peer may lose the answer.
  void linger(Connection& c) {
    if (c.input_ended) return close(c);
    c.phase = Phase::lingering;
    if (tls != nullptr) tls->end(c.link.get());
    ::shutdown(bufferevent_getfd(c.link.get()), SHUT_WR);
    rest(c, kLingers);
    advance(c);
  }

  // --- What libevent calls. None throws: there is C in between.

  static void on_accept(evconnlistener*, evutil_socket_t fd, sockaddr* from, int size, void* loop) noexcept {
    static_cast<Loop*>(loop)->accept(fd, from, size);
  }
  // No descriptor is free: the listener would be ready again at once.
  static void on_accept_failed(evconnlistener* listener, void* loop) noexcept {
    if (std::list<Connection*>& idle = static_cast<Loop*>(loop)->idle; !idle.empty())
      static_cast<Loop*>(loop)->close(*idle.front());
    evconnlistener_disable(listener);
    const timeval later = timeval_of(kAcceptsAgain);
    event_add(static_cast<Loop*>(loop)->accepts_again.get(), &later);
  }
  static void on_accepts_again(evutil_socket_t, short, void* loop) noexcept {
    if (HeldListener& held = static_cast<Loop*>(loop)->listener) evconnlistener_enable(held.get());
  }
  static void on_mail(evutil_socket_t, short, void* loop) noexcept { static_cast<Loop*>(loop)->take_mail(); }
  static void on_read(bufferevent*, void* connection) noexcept {
    Connection& c = *static_cast<Connection*>(connection);
    c.loop.advance(c);
    // Not libevent's high watermark: as long as it is reached, libevent calls this again and again.
    const bool is_answered = c.phase == Phase::answering || c.phase == Phase::flushing;
    if (is_answered && !c.is_closed && evbuffer_get_length(c.input()) >= kReadAhead)
      bufferevent_disable(c.link.get(), EV_READ);
  }
  static void on_written(bufferevent*, void* connection) noexcept {
    Connection& c = *static_cast<Connection*>(connection);
    if (c.phase == Phase::flushing && evbuffer_get_length(c.output()) == 0) c.loop.flushed(c);
  }
  static void on_output(evbuffer* buffer, const evbuffer_cb_info* info, void* connection) noexcept {
    Connection& c = *static_cast<Connection*>(connection);
    if (c.phase != Phase::answering && c.phase != Phase::flushing) return;
    const std::size_t left = evbuffer_get_length(buffer);
    if (c.exchange != nullptr) {
      const std::lock_guard lock(c.exchange->mutex);
      c.exchange->leaving = left;
    }
    if (left == 0) {
      event_del(c.timer.get());
    } else if (info->n_deleted > 0 || info->orig_size == 0) {
      c.wait(c.loop.options.limits.write_time);
    }
  }
  static void on_end(bufferevent*, short what, void* connection) noexcept {
    Connection& c = *static_cast<Connection*>(connection);
    if ((what & (BEV_EVENT_EOF | BEV_EVENT_ERROR)) == 0) return;  // the handshake is done
    c.input_ended = true;
    const bool still_writes = (what & BEV_EVENT_ERROR) == 0 && c.loop.tls == nullptr;
    if (!still_writes || c.phase != Phase::flushing) c.loop.lose(c);
  }
  static void on_time(evutil_socket_t, short, void* connection) noexcept {
    Connection& c = *static_cast<Connection*>(connection);
    const bool is_late = (c.phase == Phase::head && c.has_begun) || c.phase == Phase::body;
    if (!is_late) return c.loop.lose(c);
    c.loop.refuse(c, {408, "the request did not come in time"}, {}, true);
  }
};

Status HttpServer::Loop::begin(int listening) {
  Fd owned(listening);
  base = TRY(make_event_base());
  listener.reset(made(
      evconnlistener_new(base.get(), &on_accept, this, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, owned.get())));
  owned.release();
  evconnlistener_set_error_cb(listener.get(), &on_accept_failed);
  mail.reset(made(event_new(base.get(), mailbox->fd(), EV_READ | EV_PERSIST, &on_mail, this)));
  accepts_again.reset(made(event_new(base.get(), -1, 0, &on_accepts_again, this)));
  event_add(mail.get(), nullptr);
  id_seed = std::random_device()() * std::uint64_t{0x9e3779b97f4a7c15} ^ std::random_device()();
  thread = std::thread([this] { run(); });
  return {};
}

Result<std::unique_ptr<HttpServer>> HttpServer::start(HttpServerOptions options) {
  const bool needs_token = std::ranges::any_of(options.routes, &HttpRoute::needs_token);
  if (needs_token && options.tokens.empty() && !is_loopback(options.bind.host))
    return error(ErrorKind::invalid, "{} is reached from other machines, and there is no token", options.bind.host)
        .hinted("give a token that requests have to show, or listen on 127.0.0.1");
  for (const std::string& token : options.tokens)
    if (token.empty() || !is_header("authorization", token))
      return error(ErrorKind::invalid, "a token is empty or has control characters");
  std::unique_ptr<HttpServer> server(new HttpServer());
  server->loop_ = std::make_unique<Loop>(options);
  Loop& loop = *server->loop_;
  if (options.certificate.empty() != options.key.empty())
    return error(ErrorKind::invalid, "TLS needs both a certificate and its key");
  if (!options.key.empty()) loop.tls = TRY(HttpTls::open(options.certificate, options.key));
  ListeningSocket socket = TRY(listen_on(options.bind));
  server->address_ = {options.bind.host, socket.port};
  loop.mailbox = TRY(HttpMailbox::make());
  TRY(loop.begin(socket.fd.release()));
  return server;
}

HttpServer::~HttpServer() {
  if (loop_ == nullptr || !loop_->thread.joinable()) return;
  loop_->mailbox->stop();
  loop_->thread.join();
}

std::size_t HttpServer::connections() const {
  const std::lock_guard lock(loop_->mutex);
  return loop_->count;
}

bool HttpServer::drain(NetDeadline deadline) {
  loop_->mailbox->drain();
  std::unique_lock lock(loop_->mutex);
  return loop_->fewer.wait_until(lock, deadline, [&] { return loop_->drained; });
}

}  // namespace systole
