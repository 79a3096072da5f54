#include <sys/eventfd.h>

#include <cerrno>

#include "ground/base/os_error.h"
#include "ground/net/http_exchange.h"

namespace systole {
namespace {

using Phase = HttpExchange::Phase;

// Changes it under its lock. If `change` returns true, the loop is woken to look at it.
template <typename Change>
void changed(const std::shared_ptr<HttpExchange>& exchange, Change change) {
  {
    const std::lock_guard lock(exchange->mutex);
    if (!change(*exchange) || exchange->gone || std::exchange(exchange->posted, true)) return;
  }
  exchange->mailbox->post(exchange);
}

void check_headers(const HttpResponse& response) {
  CHECK(response.status >= 200 && response.status <= 999, "{} is no final status", response.status);
  for (const auto& [name, value] : response.headers)
    CHECK(is_header(name, value), "'{}' is no header that can be sent", name);
  CHECK(response.type.empty() || is_header("content-type", response.type), "a content type has control characters");
}

}  // namespace

Result<std::shared_ptr<HttpMailbox>> HttpMailbox::make() {
  auto mailbox = std::make_shared<HttpMailbox>();
  mailbox->wake_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (mailbox->fd() < 0) return os_error(errno, "make an event descriptor");
  return mailbox;
}

template <typename Change>
void HttpMailbox::change(Change change) {
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  change();
  const std::uint64_t one = 1;
  while (::write(fd(), &one, sizeof one) < 0 && errno == EINTR) {}
}

void HttpMailbox::post(std::shared_ptr<HttpExchange> exchange) {
  change([&] { mail_.exchanges.push_back(std::move(exchange)); });
}
void HttpMailbox::drain() {
  change([&] { mail_.drain = true; });
}
void HttpMailbox::stop() {
  change([&] { mail_.stop = true; });
}

HttpMailbox::Mail HttpMailbox::take() {
  const std::lock_guard lock(mutex_);
  std::uint64_t count = 0;
  while (::read(fd(), &count, sizeof count) < 0 && errno == EINTR) {}
  return std::exchange(mail_, {});
}

void HttpMailbox::close() {
  Mail rest;  // its exchanges end without the lock
  const std::lock_guard lock(mutex_);
  closed_ = true;
  std::swap(rest, mail_);
}

// The last copy of a responder ends it.
struct HttpResponder::Promise {
  std::shared_ptr<HttpExchange> exchange;
  explicit Promise(std::shared_ptr<HttpExchange> of) : exchange(std::move(of)) {}
  Promise(const Promise&) = delete;
  ~Promise() {
    changed(exchange, [](HttpExchange& held) {
      if (held.phase != Phase::open && held.phase != Phase::begun) return false;
      held.phase = Phase::cut;
      return true;
    });
  }
};

HttpResponder::HttpResponder(std::shared_ptr<HttpExchange> exchange)
    : promise_(std::make_shared<Promise>(std::move(exchange))) {}

void HttpResponder::send(HttpResponse response) {
  check_headers(response);
  changed(promise_->exchange, [&](HttpExchange& exchange) {
    if (exchange.phase != Phase::open) return false;
    exchange.phase = Phase::whole;
    exchange.record->enter(HttpRecord::kSend);
    exchange.body = std::exchange(response.body, {});
    exchange.head = std::move(response);
    return true;
  });
}

void HttpResponder::begin(HttpResponse head) {
  check_headers(head);
  changed(promise_->exchange, [&](HttpExchange& exchange) {
    if (exchange.phase != Phase::open) return false;
    exchange.deaf = exchange.is_head_request;
    exchange.phase = exchange.deaf ? Phase::whole : Phase::begun;
    exchange.is_streamed = true;
    exchange.body = std::exchange(head.body, {});
    exchange.head = std::move(head);
    return true;
  });
}

StreamWrite HttpResponder::write(std::string_view piece) {
  StreamWrite result = StreamWrite::taken;
  changed(promise_->exchange, [&](HttpExchange& exchange) {
    CHECK(exchange.phase != Phase::open, "write() before begin()");
    const std::size_t held = std::min(exchange.body.size() + exchange.leaving, exchange.most);
    if (exchange.gone || exchange.phase != Phase::begun) {
      result = StreamWrite::gone;
    } else if (piece.size() > exchange.most - held) {
      result = StreamWrite::full;
    } else {
      exchange.body += piece;
    }
    return result == StreamWrite::taken;
  });
  return result;
}

void HttpResponder::end() {
  changed(promise_->exchange, [](HttpExchange& exchange) {
    CHECK(exchange.phase != Phase::open, "end() before begin()");
    if (exchange.phase != Phase::begun) return false;
    exchange.phase = Phase::whole;
    exchange.record->enter(HttpRecord::kSend);
    return true;
  });
}

bool HttpResponder::is_gone() const {
  const std::lock_guard lock(promise_->exchange->mutex);
  return promise_->exchange->gone || promise_->exchange->deaf;
}

HttpRecord& HttpResponder::record() const { return *promise_->exchange->record; }

std::size_t HttpResponder::buffered() const {
  const std::lock_guard lock(promise_->exchange->mutex);
  return promise_->exchange->body.size() + promise_->exchange->leaving;
}

void HttpResponder::when_gone(std::function<void()> leave) {
  {
    HttpExchange& exchange = *promise_->exchange;
    const std::lock_guard lock(exchange.mutex);
    if (!exchange.gone) {
      if (exchange.phase == Phase::open || exchange.phase == Phase::begun) exchange.leave.swap(leave);
      return;
    }
  }
  leave();
}

}  // namespace systole
