#include "ground/net/http_server.h"
#include "ground/base/sigpipe.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <random>

#include "ground/net/http_server_loop.h"

namespace systole {
namespace {

using std::chrono::steady_clock;

constexpr Seconds kAcceptsAgain(0.1);  // after descriptors ran out
// Of the requests behind the one that is answered. Who sends more is not read until its answer has left, and is missed
// only when something is written.
constexpr std::size_t kReadAhead = std::size_t{64} << 10;
constexpr std::size_t kMostRefused = 64;
constexpr int kLeft = 499;

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

void HttpServer::Loop::run() {
  block_sigpipe();  // libevent writes with writev()
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

void HttpServer::Loop::take_mail() {
  const HttpMailbox::Mail taken = mailbox->take();
  stopping = stopping || taken.stop;
  for (const std::shared_ptr<HttpExchange>& exchange : taken.exchanges)
    if (exchange->connection != nullptr) answer(*static_cast<Connection*>(exchange->connection));
  if (taken.drain && !draining) drain();
}

void HttpServer::Loop::drain() {
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

void HttpServer::Loop::tell_count() {
  {
    const std::lock_guard lock(mutex);
    count = connections.size();
    drained = draining && count == 0;
  }
  fewer.notify_all();
}

void HttpServer::Loop::accept(int fd, const sockaddr* from, int size) {
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

void HttpServer::Loop::rest(Connection& c, Seconds time) {
  c.wait(time);
  if (!c.idle) c.idle = idle.insert(idle.end(), &c);
}

void HttpServer::Loop::leave_rest(Connection& c) {
  if (c.idle) idle.erase(*c.idle);
  c.idle.reset();
}

void HttpServer::Loop::close(Connection& c) {
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

void HttpServer::Loop::leave(HttpExchange& exchange) {
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

void HttpServer::Loop::lose(Connection& c) {
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

void HttpServer::Loop::tell_access(Connection& c) {
  const steady_clock::time_point ended = c.record->end(steady_clock::now());
  c.access.time = Seconds(std::chrono::duration<double>(ended - c.began).count());
  c.access.record = c.record;
  if (options.access) options.access(c.access);
}

void HttpServer::Loop::on_accept(evconnlistener*, evutil_socket_t fd, sockaddr* from, int size, void* loop) noexcept {
  static_cast<Loop*>(loop)->accept(fd, from, size);
}

void HttpServer::Loop::on_accept_failed(evconnlistener* listener, void* loop) noexcept {
  if (std::list<Connection*>& idle = static_cast<Loop*>(loop)->idle; !idle.empty())
    static_cast<Loop*>(loop)->close(*idle.front());
  evconnlistener_disable(listener);
  const timeval later = timeval_of(kAcceptsAgain);
  event_add(static_cast<Loop*>(loop)->accepts_again.get(), &later);
}

void HttpServer::Loop::on_accepts_again(evutil_socket_t, short, void* loop) noexcept {
  if (HeldListener& held = static_cast<Loop*>(loop)->listener) evconnlistener_enable(held.get());
}

void HttpServer::Loop::on_mail(evutil_socket_t, short, void* loop) noexcept { static_cast<Loop*>(loop)->take_mail(); }
void HttpServer::Loop::on_read(bufferevent*, void* connection) noexcept {
  Connection& c = *static_cast<Connection*>(connection);
  c.loop.advance(c);
  // Not libevent's high watermark: as long as it is reached, libevent calls this again and again.
  const bool is_answered = c.phase == Phase::answering || c.phase == Phase::flushing;
  if (is_answered && !c.is_closed && evbuffer_get_length(c.input()) >= kReadAhead)
    bufferevent_disable(c.link.get(), EV_READ);
}

void HttpServer::Loop::on_written(bufferevent*, void* connection) noexcept {
  Connection& c = *static_cast<Connection*>(connection);
  if (c.phase == Phase::flushing && evbuffer_get_length(c.output()) == 0) c.loop.flushed(c);
}

void HttpServer::Loop::on_output(evbuffer* buffer, const evbuffer_cb_info* info, void* connection) noexcept {
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

void HttpServer::Loop::on_end(bufferevent*, short what, void* connection) noexcept {
  Connection& c = *static_cast<Connection*>(connection);
  if ((what & (BEV_EVENT_EOF | BEV_EVENT_ERROR)) == 0) return;  // the handshake is done
  c.input_ended = true;
  const bool still_writes = (what & BEV_EVENT_ERROR) == 0 && c.loop.tls == nullptr;
  if (!still_writes || c.phase != Phase::flushing) c.loop.lose(c);
}

void HttpServer::Loop::on_time(evutil_socket_t, short, void* connection) noexcept {
  Connection& c = *static_cast<Connection*>(connection);
  const bool is_late = (c.phase == Phase::head && c.has_begun) || c.phase == Phase::body;
  if (!is_late) return c.loop.lose(c);
  c.loop.refuse(c, {408, "the request did not come in time"}, {}, true);
}

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
