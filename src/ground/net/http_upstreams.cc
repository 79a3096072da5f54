#include "ground/net/http_upstreams.h"
#include "ground/base/sigpipe.h"

#include <event2/util.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <functional>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "ground/base/fd.h"
#include "ground/base/os_error.h"
#include "ground/net/event_loop.h"

namespace systole {
namespace {

constexpr Seconds kHeadTime(10.0);  // from a head's first byte to its last

std::string text_of(const HttpUpstreamRequest& request) {
  std::string text = fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", request.method, request.target,
                                 to_string(request.to));
  for (const auto& [name, value] : request.headers) text += fmt::format("{}: {}\r\n", name, value);
  if (request.body != nullptr) text += fmt::format("Content-Length: {}\r\n", request.body->size());
  return text + "\r\n";
}

}  // namespace

// One request, of the loop's thread alone.
struct HttpUpstreams::Link {
  Loop& loop;
  std::uint64_t number;
  std::shared_ptr<HttpReplySink> sink;
  HeldLink link = {};
  HeldEvent head_timer = {}, timer = {};
  HttpReplyReader reply = {};
  bool has_begun = false, is_closed = false;
};

struct HttpUpstreams::Loop {
  Fd wake;
  HeldBase base;
  HeldEvent mail;
  std::unordered_map<std::uint64_t, std::unique_ptr<Link>> links;
  std::vector<std::unique_ptr<Link>> closed;  // until the events of this turn are over
  bool stopping = false;
  std::atomic<std::uint64_t> numbers{0};
  std::mutex mutex;
  std::vector<std::function<void()>> tasks;  // for the loop's thread; guarded by the mutex
  std::thread thread;

  void run() {
    block_sigpipe();
    while (!stopping) {
      event_base_loop(base.get(), EVLOOP_ONCE);
      closed.clear();
    }
    mail.reset();
    while (!links.empty()) close(*links.begin()->second);
    closed.clear();
    event_base_loop(base.get(), EVLOOP_NONBLOCK);  // libevent frees a connection in a turn of its own
  }
  void post(std::function<void()> task) {
    const std::lock_guard lock(mutex);
    tasks.push_back(std::move(task));
    const std::uint64_t one = 1;
    while (::write(wake.get(), &one, sizeof one) < 0 && errno == EINTR) {}
  }
  void take_mail() {
    std::vector<std::function<void()>> taken;
    {
      const std::lock_guard lock(mutex);
      std::uint64_t count = 0;
      while (::read(wake.get(), &count, sizeof count) < 0 && errno == EINTR) {}
      taken.swap(tasks);
    }
    for (const std::function<void()>& task : taken) task();
  }

  void begin(std::uint64_t number, const HttpUpstreamRequest& request, std::shared_ptr<HttpReplySink> sink) {
    auto held = std::make_unique<Link>(Link{*this, number, std::move(sink)});
    Link& l = *held;
    links.emplace(number, std::move(held));
    l.link.reset(made(bufferevent_socket_new(base.get(), -1, BEV_OPT_CLOSE_ON_FREE)));
    l.head_timer.reset(made(event_new(base.get(), -1, 0, &on_time, &l)));
    l.timer.reset(made(event_new(base.get(), -1, 0, &on_time, &l)));
    bufferevent_setcb(l.link.get(), &on_read, nullptr, &on_end, &l);
    sockaddr_storage address{};
    int size = sizeof address;
    if (evutil_parse_sockaddr_port(to_string(request.to).c_str(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
      return end(l, error(ErrorKind::io, "the server has no numeric address"));
    const std::string head = text_of(request);
    evbuffer* const output = bufferevent_get_output(l.link.get());
    evbuffer_add(output, head.data(), head.size());
    if (request.body != nullptr) evbuffer_add(output, request.body->data(), request.body->size());
    bufferevent_enable(l.link.get(), EV_READ | EV_WRITE);
    if (request.timeout > Seconds()) {
      const timeval until = timeval_of(request.timeout);
      event_add(l.timer.get(), &until);
    }
    // Of a server that refuses it, on_end hears.
    if (bufferevent_socket_connect(l.link.get(), reinterpret_cast<sockaddr*>(&address), size) != 0)
      end(l, error(ErrorKind::busy, "{}", os_error(errno, "make a connection").message).hinted("try again later"));
  }
  void cancel(std::uint64_t number) {
    if (const auto found = links.find(number); found != links.end()) close(*found->second);
  }
  void close(Link& l) {
    if (std::exchange(l.is_closed, true)) return;
    bufferevent_disable(l.link.get(), EV_READ | EV_WRITE);
    bufferevent_setcb(l.link.get(), nullptr, nullptr, nullptr, nullptr);
    event_del(l.head_timer.get());
    event_del(l.timer.get());
    const auto found = links.find(l.number);
    closed.push_back(std::move(found->second));
    links.erase(found);
  }
  void end(Link& l, const Status& how) {
    if (l.is_closed) return;
    close(l);
    l.sink->end(how);
  }
  void read(Link& l) {
    evbuffer* const input = bufferevent_get_input(l.link.get());
    const std::size_t size = evbuffer_get_length(input);
    if (size == 0) return;
    const Status taken = l.reply.take(front_of(input, size));
    evbuffer_drain(input, size);
    if (!taken.ok()) return end(l, taken);
    const HttpReplyHead* head = l.reply.head();
    if (head == nullptr) {
      const timeval until = timeval_of(kHeadTime);
      if (event_pending(l.head_timer.get(), EV_TIMEOUT, nullptr) == 0) event_add(l.head_timer.get(), &until);
      return;
    }
    if (!std::exchange(l.has_begun, true)) {
      event_del(l.head_timer.get());
      l.sink->begin(*head);
    }
    if (std::string piece = l.reply.take_body(); !piece.empty())
      if (const Status wanted = l.sink->take(std::move(piece)); !wanted.ok()) return end(l, wanted);
    if (l.reply.is_whole()) end(l, {});
  }

  // --- What libevent calls. None throws: there is C in between.

  static void on_mail(evutil_socket_t, short, void* loop) noexcept { static_cast<Loop*>(loop)->take_mail(); }
  static void on_read(bufferevent*, void* link) noexcept {
    Link& l = *static_cast<Link*>(link);
    l.loop.read(l);
  }
  static void on_end(bufferevent* link, short what, void* of) noexcept {
    Link& l = *static_cast<Link*>(of);
    if ((what & BEV_EVENT_CONNECTED) != 0) {  // small pieces leave at once
      const int on = 1;
      ::setsockopt(bufferevent_getfd(link), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      return;
    }
    if ((what & (BEV_EVENT_EOF | BEV_EVENT_ERROR)) == 0) return;
    const int failed = EVUTIL_SOCKET_ERROR();
    l.loop.read(l);  // what came before
    if (l.is_closed) return;
    if ((what & BEV_EVENT_ERROR) != 0 && failed != 0) return l.loop.end(l, os_error(failed, "get the reply"));
    l.loop.end(l, error(ErrorKind::io, "the connection was closed before the end of the reply"));
  }
  static void on_time(evutil_socket_t, short, void* link) noexcept {
    Link& l = *static_cast<Link*>(link);
    l.loop.end(l, error(ErrorKind::io, "the reply did not come in time"));
  }
};

Result<std::unique_ptr<HttpUpstreams>> HttpUpstreams::start() {
  std::unique_ptr<HttpUpstreams> upstreams(new HttpUpstreams());
  upstreams->loop_ = std::make_unique<Loop>();
  Loop& loop = *upstreams->loop_;
  loop.wake = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (loop.wake.get() < 0) return os_error(errno, "make an event descriptor");
  loop.base = TRY(make_event_base());
  loop.mail.reset(made(event_new(loop.base.get(), loop.wake.get(), EV_READ | EV_PERSIST, &Loop::on_mail, &loop)));
  event_add(loop.mail.get(), nullptr);
  loop.thread = std::thread([&loop] { loop.run(); });
  return upstreams;
}

HttpUpstreams::~HttpUpstreams() {
  if (loop_ == nullptr || !loop_->thread.joinable()) return;
  loop_->post([loop = loop_.get()] { loop->stopping = true; });
  loop_->thread.join();
}

std::uint64_t HttpUpstreams::send(HttpUpstreamRequest request, std::shared_ptr<HttpReplySink> sink) {
  const std::uint64_t number = ++loop_->numbers;
  loop_->post([loop = loop_.get(), number, request = std::move(request), sink = std::move(sink)] {
    loop->begin(number, request, sink);
  });
  return number;
}

void HttpUpstreams::cancel(std::uint64_t request) {
  loop_->post([loop = loop_.get(), request] { loop->cancel(request); });
}

}  // namespace systole
