// What the loop of an HttpServer does with a connection's bytes: requests in, answers out.

#include <sys/socket.h>

#include <algorithm>
#include <ctime>

#include "ground/net/http_server_loop.h"

namespace systole {
namespace {

using std::chrono::steady_clock;

constexpr Seconds kLingers(1.0);  // for the peer to read the answer that ends its connection
constexpr std::size_t kMostId = 128;

bool is_request_id(std::string_view text) {
  return !text.empty() && text.size() <= kMostId && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
  });
}

std::size_t size_of(Bytes bytes) { return static_cast<std::size_t>(bytes.count()); }

}  // namespace

void HttpServer::Loop::advance(Connection& c) {
  switch (c.phase) {
    case Phase::head: read_head(c); return;
    case Phase::body: read_body(c); return;
    case Phase::lingering: evbuffer_drain(c.input(), evbuffer_get_length(c.input())); return;
    case Phase::answering:
    case Phase::flushing: return;
  }
}

void HttpServer::Loop::read_head(Connection& c) {
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

void HttpServer::Loop::look_at_head(Connection& c) {
  HttpRequestHead& head = c.head;
  leave_rest(c);
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

std::string HttpServer::Loop::make_id() { return fmt::format("req_{:016x}{:08x}", id_seed, ++id_count); }
void HttpServer::Loop::read_body(Connection& c) {
  std::string& body = c.request.body;
  const std::size_t before = body.size(), some = std::min(evbuffer_get_length(c.input()), c.length - before);
  body.resize(before + some);
  evbuffer_remove(c.input(), body.data() + before, some);
  if (body.size() == c.length) return handle(c);
  if (c.input_ended) lose(c);
}

void HttpServer::Loop::handle(Connection& c) {
  c.phase = Phase::answering;
  event_del(c.timer.get());
  c.exchange = std::make_shared<HttpExchange>();
  c.exchange->mailbox = mailbox;
  c.exchange->most = size_of(options.limits.stream_buffer);
  c.exchange->is_head_request = c.head.method == "HEAD";
  c.exchange->connection = &c;
  try {
    c.route->handler(std::move(c.request), HttpResponder(c.exchange));
  } catch (const std::exception& thrown) { c.access.failure = thrown.what(); }
  c.request = {};
  answer(c);
  if (c.input_ended && c.phase == Phase::answering) lose(c);
}

void HttpServer::Loop::answer(Connection& c) {
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

std::string HttpServer::Loop::begin_answer(Connection& c, const HttpResponse& response, std::string framing) {
  if (c.closes) framing += "Connection: close\r\n";
  c.access.status = response.status;
  c.has_head_left = true;
  return head_text(response, c.access.id, framing, std::time(nullptr));
}

std::string HttpServer::Loop::stream_head(Connection& c, const HttpResponse& response) {
  c.is_chunked = !c.head.is_1_0 && c.head.method != "HEAD";
  return begin_answer(c, response, c.head.is_1_0 ? "" : "Transfer-Encoding: chunked\r\n");
}

void HttpServer::Loop::put_whole(Connection& c, const HttpResponse& response, std::string_view body) {
  const bool has_none = response.status == 204 || response.status == 304;
  const std::string head =
      begin_answer(c, response, has_none ? "" : fmt::format("Content-Length: {}\r\n", body.size()));
  if (has_none || c.head.method == "HEAD") body = {};
  c.access.sent += Bytes(static_cast<std::int64_t>(body.size()));
  c.put(head);
  c.put(body);
  finish(c);
}

void HttpServer::Loop::refuse(Connection& c, const HttpFault& fault, const HttpHeaders& headers, bool closes) {
  leave_rest(c);
  event_del(c.timer.get());
  c.phase = Phase::answering;
  c.closes = c.closes || closes || draining;
  c.access.peer = c.peer;
  if (c.access.id.empty()) c.access.id = make_id();
  HttpResponse response = options.error(fault);
  response.headers.insert(response.headers.end(), headers.begin(), headers.end());
  put_whole(c, response, response.body);
}

void HttpServer::Loop::finish(Connection& c) {
  c.phase = Phase::flushing;
  if (c.exchange != nullptr) {
    std::function<void()> dropped;
    const std::lock_guard lock(c.exchange->mutex);
    c.exchange->leave.swap(dropped);
  }
  if (evbuffer_get_length(c.output()) == 0) flushed(c);  // a stream without chunks ends in no byte
}

void HttpServer::Loop::flushed(Connection& c) {
  event_del(c.timer.get());
  if (!c.input_ended) bufferevent_enable(c.link.get(), EV_READ);
  tell_access(c);
  body_bytes -= std::exchange(c.length, 0);
  if (c.exchange != nullptr) std::exchange(c.exchange, nullptr)->connection = nullptr;
  c.access = {};
  c.head = {};
  c.has_begun = c.has_head_left = c.is_chunked = false;
  if (c.closes) return linger(c);
  c.phase = Phase::head;
  rest(c, options.limits.idle_time);
  advance(c);
}

void HttpServer::Loop::linger(Connection& c) {
  if (c.input_ended) return close(c);
  c.phase = Phase::lingering;
  if (tls != nullptr) tls->end(c.link.get());
  ::shutdown(bufferevent_getfd(c.link.get()), SHUT_WR);
  rest(c, kLingers);
  advance(c);
}

}  // namespace systole
