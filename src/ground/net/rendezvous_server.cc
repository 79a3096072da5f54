#include "ground/net/rendezvous_server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <list>
#include <unordered_map>

#include "ground/base/os_error.h"

namespace systole {
namespace {

// One connection. `in` holds at most the hello or one frame, `out` at most one reply.
struct Peer {
  enum class Begins { undecided, shaking_hands, over };

  NetStream stream;
  Begins begins = Begins::over;  // undecided: the first byte decides between plain and TLS
  std::uint64_t number = 0;
  bool known = false;    // has sent the token
  bool waiting = false;  // a request is in progress: nothing is read until it is answered
  Seconds since{};       // the start of the connection, or of the current frame or reply
  std::vector<std::byte> in, out;
  std::size_t sent = 0;
  std::uint32_t watched = 0;                      // registered epoll events
  std::list<std::uint64_t>::iterator place = {};  // in the list of strangers
};

constexpr std::uint64_t kListener = 0, kWake = 1, kFirstPeer = 2;
constexpr int kAcceptsAtOnce = 64, kRequestsAtOnce = 16;
constexpr Seconds kSweep(0.05);
constexpr std::byte kTlsHandshake{0x16};  // first byte of a TLS connection (RFC 8446, 5.1)
static_assert(EPOLLIN == POLLIN && EPOLLOUT == POLLOUT);

}  // namespace

class RendezvousServer::Loop {
 public:
  Loop(const RunToken& token, std::shared_ptr<const Tls> tls, RendezvousServerOptions options, Fd listener, int wake,
       std::atomic<std::int64_t>& away, std::atomic<std::size_t>& waiting)
      : token_(token),
        tls_(std::move(tls)),
        options_(std::move(options)),
        state_(options_.limits),
        listener_(std::move(listener)),
        wake_(wake),
        turned_away_(away),
        waiting_(waiting),
        clock_(real_clock()) {}

  Status open() {
    epoll_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
    if (epoll_.get() < 0) return os_error(errno, "watch sockets");
    watch(listener_.get(), kListener, EPOLLIN, EPOLL_CTL_ADD);
    watch(wake_, kWake, EPOLLIN, EPOLL_CTL_ADD);
    return Done{};
  }

  void run() {
    std::array<epoll_event, 128> events;
    while (true) {
      const int ready = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout_ms());
      now_ = clock_->now();
      for (int i = 0; i < ready; ++i) {
        if (events[i].data.u64 == kWake) return;
        if (events[i].data.u64 == kListener) {
          accept_some();
        } else {
          serve(events[i].data.u64, events[i].events);
        }
      }
      serve_held();
      const std::vector<RendezvousState::Answer> late = state_.advance(now_);
      waiting_ = state_.waiting();
      deliver(late);
      if (now_ >= sweep_at_) sweep();
    }
  }

 private:
  void watch(int fd, std::uint64_t number, std::uint32_t events, int how) {
    epoll_event event{};
    event.events = events;
    event.data.u64 = number;
    ::epoll_ctl(epoll_.get(), how, fd, &event);
  }

  int timeout_ms() const {
    if (!held_.empty()) return 0;
    Seconds until = peers_.empty() && listening_ ? Seconds(3600.0) : kSweep;
    if (const std::optional<Seconds> next = state_.next()) until = std::min(until, *next - clock_->now());
    return static_cast<int>(std::clamp(std::ceil(until.count() * 1e3), 0.0, 60'000.0));
  }

  void accept_some() {
    for (int i = 0; i < kAcceptsAtOnce; ++i) {
      Fd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (fd.get() < 0) {
        const bool no_room = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
        if (no_room && !strangers_.empty()) {
          drop(strangers_.front());
        } else if (no_room) {  // until the next sweep; epoll is level-triggered and would spin
          watch(listener_.get(), kListener, 0, EPOLL_CTL_MOD);
          listening_ = false;
        }
        return;
      }
      const int on = 1;
      ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      add(std::move(fd));
    }
  }

  void add(Fd fd) {
    if (strangers_.size() >= options_.strangers) drop(strangers_.front());
    const std::uint64_t number = next_number_++;
    Peer& peer = peers_[number];
    peer.stream = NetStream(std::move(fd));
    if (tls_ != nullptr) peer.begins = Peer::Begins::undecided;
    peer.number = number;
    peer.since = now_;
    peer.place = strangers_.insert(strangers_.end(), number);
    peer.watched = EPOLLIN | EPOLLRDHUP;
    watch(peer.stream.fd(), number, peer.watched, EPOLL_CTL_ADD);
    serve(number, EPOLLIN);  // the hello often has arrived already
  }

  void drop(std::uint64_t number) {
    const auto found = peers_.find(number);
    if (found == peers_.end()) return;
    state_.leave(number);
    waiting_ = state_.waiting();
    if (!found->second.known) {
      strangers_.erase(found->second.place);
      ++turned_away_;
    }
    peers_.erase(found);  // closes; epoll drops a closed descriptor
  }

  void serve(std::uint64_t number, std::uint32_t events) {
    const auto found = peers_.find(number);
    if (found == peers_.end()) return;  // closed earlier in this round
    Peer& peer = found->second;
    bool alive = (events & (EPOLLERR | EPOLLHUP)) == 0;
    if (alive && peer.begins != Peer::Begins::over) alive = begin(peer);
    const bool begun = peer.begins == Peer::Begins::over;
    if (alive && begun && (events & EPOLLOUT) != 0) alive = send_some(peer);
    for (int i = 0; alive && begun && i < kRequestsAtOnce && !peer.waiting && peer.out.empty(); ++i) {
      const Taken taken = receive_some(peer);
      alive = taken != Taken::closed;
      if (taken == Taken::nothing) break;
    }
    if (!alive || (events & EPOLLRDHUP) != 0) {
      drop(number);
    } else {
      rewatch(peer);
    }
  }

  // Serves peers with bytes that TLS has already decrypted; epoll does not report them.
  void serve_held() {
    for (const std::uint64_t number : std::exchange(held_, {})) serve(number, EPOLLIN);
  }

  // Detects TLS by the first byte and advances the handshake. False: the connection must be closed.
  bool begin(Peer& peer) {
    if (peer.begins == Peer::Begins::undecided) {
      std::byte first;
      const ssize_t got = ::recv(peer.stream.fd(), &first, 1, MSG_PEEK | MSG_DONTWAIT);
      if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return true;
      if (got <= 0) return false;
      peer.begins = Peer::Begins::over;
      if (first != kTlsHandshake) return true;
      peer.begins = Peer::Begins::shaking_hands;
      peer.stream.encrypt(tls_, TlsSide::server);
    }
    const Result<bool> done = peer.stream.shake_hands("a client");
    if (done.ok() && *done) peer.begins = Peer::Begins::over;
    return done.ok();
  }

  void rewatch(Peer& peer) {
    const bool reads = peer.out.empty() && !peer.waiting;
    const short events = !peer.out.empty() ? POLLOUT : reads ? POLLIN : 0;
    const std::uint32_t wanted = EPOLLRDHUP | static_cast<std::uint32_t>(peer.stream.awaits(events));
    if (reads && peer.stream.holds_bytes()) held_.push_back(peer.number);
    if (wanted == peer.watched) return;
    peer.watched = wanted;
    watch(peer.stream.fd(), peer.number, wanted, EPOLL_CTL_MOD);
  }

  enum class Taken { closed, nothing, some };

  // Reads up to the end of the next hello or frame, and handles it once complete.
  Taken receive_some(Peer& peer) {
    const std::size_t target = target_of(peer);
    std::array<std::byte, 16 * 1024> piece;
    const ssize_t got = peer.stream.receive(std::span(piece).first(std::min(piece.size(), target - peer.in.size())));
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return Taken::nothing;
    if (got <= 0) return Taken::closed;
    if (peer.in.empty() && peer.known) peer.since = now_;
    peer.in.insert(peer.in.end(), piece.begin(), piece.begin() + got);
    const std::size_t expected = target_of(peer);  // once the length is known: the whole frame
    if (expected == 0) return Taken::closed;
    if (peer.in.size() < expected) return Taken::some;
    const bool alive = peer.known ? act(peer) : greet(peer);
    return alive ? Taken::some : Taken::closed;
  }

  // The size of `in` at which the next hello or frame is complete; 0: invalid length.
  static std::size_t target_of(const Peer& peer) {
    if (!peer.known) return kRendezvousHello;
    if (peer.in.size() < 4) return 4;
    const std::optional<std::size_t> length = frame_length(std::span(peer.in).first<4>());
    return length ? 4 + *length : 0;
  }

  bool greet(Peer& peer) {
    const std::span<const std::byte> hello(peer.in);
    const auto magic = std::as_bytes(std::span(kRendezvousMagic));
    const bool speaks = std::equal(magic.begin(), magic.end(), hello.begin());
    const bool is_kin = std::equal(magic.begin(), magic.begin() + kRendezvousName.size(), hello.begin());
    const bool knows = token_.equals(hello.subspan(magic.size()));
    const std::size_t known = peers_.size() - strangers_.size();
    if (!knows || !is_kin || known >= options_.clients) return false;
    if (tls_ != nullptr && !peer.stream.is_encrypted()) {  // one of our clients, started without TLS
      (void)peer.stream.send(std::as_bytes(std::span(kRendezvousTls)));
      return false;
    }
    if (!speaks) {  // one of our clients of another version: it is told ours
      (void)peer.stream.send(magic);
      return false;
    }
    peer.known = true;
    strangers_.erase(peer.place);
    peer.in.clear();
    peer.out.assign(magic.begin(), magic.end());
    peer.since = now_;
    return send_some(peer);
  }

  bool act(Peer& peer) {
    const Result<RendezvousRequest> request = parse_request(std::span(peer.in).subspan(4));
    if (!request.ok()) return false;
    peer.in.clear();
    if (peer.in.capacity() > 4096) peer.in.shrink_to_fit();
    peer.waiting = true;
    std::vector<RendezvousState::Answer> answers = state_.ask(peer.number, *request, now_);
    waiting_ = state_.waiting();  // updated before any answer is sent
    bool alive = true;
    for (RendezvousState::Answer& answer : answers) {
      if (answer.client == peer.number) alive = reply_to(peer, answer.reply);
    }
    std::erase_if(answers, [&](const auto& answer) { return answer.client == peer.number; });
    deliver(answers);
    return alive;
  }

  // Sends answers to other clients than the one being served.
  void deliver(const std::vector<RendezvousState::Answer>& answers) {
    for (const RendezvousState::Answer& answer : answers) {
      const auto found = peers_.find(answer.client);
      if (found == peers_.end()) continue;
      if (reply_to(found->second, answer.reply)) {
        rewatch(found->second);
      } else {
        drop(answer.client);
      }
    }
  }

  bool reply_to(Peer& peer, const RendezvousReply& reply) {
    peer.waiting = false;
    peer.out = encode(reply);
    peer.sent = 0;
    peer.since = now_;
    return send_some(peer);
  }

  bool send_some(Peer& peer) {
    while (peer.sent < peer.out.size()) {
      const ssize_t sent = peer.stream.send(std::span(peer.out).subspan(peer.sent));
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
      peer.sent += static_cast<std::size_t>(sent);
    }
    peer.out = {};
    peer.sent = 0;
    return true;
  }

  // Closes connections that are too slow.
  void sweep() {
    sweep_at_ = now_ + kSweep;
    if (!listening_) {
      watch(listener_.get(), kListener, EPOLLIN, EPOLL_CTL_MOD);
      listening_ = true;
    }
    std::vector<std::uint64_t> slow;
    for (const auto& [number, peer] : peers_) {
      const bool under_way = !peer.in.empty() || !peer.out.empty();
      const Seconds allowed = peer.known ? options_.frame_time : options_.hello_time;
      if ((!peer.known || under_way) && now_ - peer.since > allowed) slow.push_back(number);
    }
    for (const std::uint64_t number : slow) drop(number);
  }

  RunToken token_;
  std::shared_ptr<const Tls> tls_;  // null: no TLS
  RendezvousServerOptions options_;
  RendezvousState state_;
  Fd listener_, epoll_;
  int wake_;
  std::atomic<std::int64_t>& turned_away_;
  std::atomic<std::size_t>& waiting_;
  std::unique_ptr<Clock> clock_;
  Seconds now_{}, sweep_at_{};
  bool listening_ = true;
  std::uint64_t next_number_ = kFirstPeer;
  std::unordered_map<std::uint64_t, Peer> peers_;
  std::list<std::uint64_t> strangers_;  // oldest first
  std::vector<std::uint64_t> held_;     // have decrypted bytes that epoll does not report
};

Result<std::unique_ptr<RendezvousServer>> RendezvousServer::start(const RunToken& token,
                                                                  RendezvousServerOptions options) {
  std::shared_ptr<const Tls> tls = options.tls ? TRY(Tls::of(token)) : nullptr;
  ListeningSocket socket = TRY(listen_on(options.bind));
  std::unique_ptr<RendezvousServer> server(new RendezvousServer());
  server->address_ = {options.bind.host, socket.port};
  server->wake_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (server->wake_.get() < 0) return os_error(errno, "make an event descriptor");
  server->loop_ = std::make_unique<Loop>(token, std::move(tls), std::move(options), std::move(socket.fd),
                                         server->wake_.get(), server->turned_away_, server->waiting_);
  TRY(server->loop_->open());
  server->thread_ = std::thread([loop = server->loop_.get()] { loop->run(); });
  return server;
}

RendezvousServer::~RendezvousServer() {
  if (!thread_.joinable()) return;
  const std::uint64_t one = 1;
  while (::write(wake_.get(), &one, sizeof one) < 0 && errno == EINTR) {}
  thread_.join();
}

}  // namespace systole
