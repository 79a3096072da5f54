#include "execute/comm/tcp_transport.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <optional>

#include "execute/comm/exchanging_transport.h"
#include "execute/comm/tcp_control.h"
#include "ground/base/os_error.h"

namespace systole {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::int64_t kHeader = 16;
constexpr std::size_t kStaging = 256 << 10;
constexpr std::size_t kRuns = 64;  // rows per system call

Seconds since(SteadyClock::time_point then) {
  return Seconds(std::chrono::duration<double>(SteadyClock::now() - then).count());
}

struct TcpPeer {
  NetStream stream;
  std::array<std::byte, 16> rest;  // the incomplete element of a piece
  bool blocked = false;
  bool gone = false;
};
// Progress of a message: bytes passed, with its header. `held`: those of them in TcpPeer::rest.
struct TcpProgress {
  std::int64_t at = 0;
  std::size_t held = 0;
  bool done = false;
  std::array<std::byte, kHeader> header;
};

class TcpTransport final : public ExchangingTransport<TcpPeer, TcpProgress> {
  using Peer = TcpPeer;
  using Progress = TcpProgress;

 public:
  TcpTransport(TcpLinks links, std::int32_t rank, Seconds patience, Fd stir)
      : ExchangingTransport(rank),
        patience_(patience),
        stir_(std::move(stir)),
        control_(std::move(links.control), rank),
        staging_(kStaging / sizeof(Staging)) {
    for (NetStream& stream : links.data) peers_.push_back({std::move(stream), {}, false, false});
    ends_.reserve(2 * peers_.size() + 1);
  }
  ~TcpTransport() override {
    // Written data still arrives: the kernel keeps sending after close, unless unread bytes lie here, which would reset
    // the connection. A peer that sends us more has erred and learns it from that.
    for (Peer& peer : peers_) peer.stream.end();
  }

  const char* name() const override { return "tcp"; }

  void abort(const std::string& why) override {
    const Error ending = error(ErrorKind::interrupted, "{}", why);
    {
      const std::lock_guard lock(aborting_);
      if (!aborted_) aborted_ = ending;
    }
    control_.tell_error(ending);
    const std::uint64_t one = 1;
    (void)!::write(stir_.get(), &one, sizeof one);
  }

 private:
  struct alignas(64) Staging {
    std::byte bytes[64];
  };
  std::byte* staging() { return staging_.front().bytes; }

  void tell(const Error& why) override { control_.tell_error(why); }

  Result<bool> play() override {
    SteadyClock::time_point moved = SteadyClock::now();
    TRY(hear());
    while (true) {
      const bool any = TRY(pass());
      if (any && told_waiting_) tell_waiting(-1);
      if (any) await(-1);
      if (left_ == 0) return true;
      if (any) {
        moved = SteadyClock::now();
        continue;
      }
      TRY(rest(moved));
    }
  }

  // Errors of peers are read when we wait.
  Result<bool> look() override {
    TRY(pass());
    return left_ == 0;
  }

  // Returns an abort of this rank, or an error reported by a peer.
  Status hear() {
    {
      const std::lock_guard lock(aborting_);
      if (aborted_) return *aborted_;
    }
    if (std::optional<Error> told = control_.listen()) return *told;
    return {};
  }

  // Writes the header and as many rows as one call takes.
  Result<bool> write(const Outgoing& message, Progress& progress, Peer& peer) override {
    const MessageStamp& stamp = exchange_.stamp_of(message);
    const std::int64_t whole = kHeader + message.bytes.count();
    if (progress.at == 0) {
      const std::array<std::uint64_t, 2> words{stamp.packed(), static_cast<std::uint64_t>(message.bytes.count())};
      std::memcpy(progress.header.data(), words.data(), kHeader);
    }
    bool any = false;
    while (progress.at < whole) {
      std::array<iovec, kRuns> runs;
      std::size_t count = 0;
      std::int64_t at = progress.at;
      if (at < kHeader) {
        runs[count++] = {progress.header.data() + at, static_cast<std::size_t>(kHeader - at)};
        at = kHeader;
      }
      while (at < whole && count < kRuns) {
        const std::span<const std::byte> run = run_at(message, Bytes(at - kHeader), Bytes(whole - at));
        runs[count++] = {const_cast<std::byte*>(run.data()), run.size()};
        at += static_cast<std::int64_t>(run.size());
      }
      const ssize_t sent = peer.stream.send(std::span(runs).first(count));
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return any;
      if (sent < 0) return lost(message.to, stamp);
      written_ +=
          std::max<std::int64_t>(0, progress.at + sent - kHeader) - std::max<std::int64_t>(0, progress.at - kHeader);
      progress.at += sent;
      any = true;
    }
    progress.done = true;
    return true;
  }

  Result<bool> take(const Incoming& message, Progress& progress, Peer& peer) override {
    const MessageStamp& stamp = exchange_.stamp_of(message);
    const std::int64_t whole = kHeader + message.bytes.count();
    bool any = false;
    while (progress.at < whole) {
      const bool head = progress.at < kHeader;
      const bool straight = message.combine == nullptr && message.row >= message.bytes;
      std::byte* into = head       ? progress.header.data() + progress.at
                        : straight ? message.into + (progress.at - kHeader)
                                   : staging() + progress.held;
      std::int64_t most = (head ? kHeader : whole) - progress.at;
      if (!head && !straight) {
        std::memcpy(staging(), peer.rest.data(), progress.held);
        most = std::min(most, static_cast<std::int64_t>(kStaging - progress.held));
      }
      const ssize_t got = peer.stream.receive({into, static_cast<std::size_t>(most)});
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return any;
      if (got <= 0) return lost(message.from, stamp);
      any = true;
      progress.at += got;
      if (head && progress.at == kHeader) TRY(check(stamp, message, progress));
      if (!head && !straight) keep(message, progress, peer, static_cast<std::size_t>(got));
    }
    progress.done = true;
    return true;
  }

  Status check(const MessageStamp& stamp, const Incoming& message, const Progress& progress) const {
    std::array<std::uint64_t, 2> words;
    std::memcpy(words.data(), progress.header.data(), kHeader);
    if (words[0] == stamp.packed() && words[1] == static_cast<std::uint64_t>(message.bytes.count())) return {};
    return mismatched_message(rank_, stamp, message.bytes, message.from, MessageStamp::unpacked(words[0]),
                              Bytes(static_cast<std::int64_t>(words[1])), exchange_.names);
  }

  // Passes on the whole elements that arrived, and holds the incomplete one.
  void keep(const Incoming& message, Progress& progress, Peer& peer, std::size_t got) {
    const auto grain = static_cast<std::size_t>(message.grain.count());
    const std::size_t there = progress.held + got, pieces = there / grain * grain;
    const Bytes begin(progress.at - kHeader - static_cast<std::int64_t>(there));
    if (pieces > 0) take_piece(message, begin, {staging(), pieces});
    progress.held = there - pieces;
    std::memcpy(peer.rest.data(), staging() + pieces, progress.held);
  }

  // Sleeps until something is possible. Reports the rank it waits for: first to the peers, then, out of patience, as
  // the error.
  Status rest(SteadyClock::time_point moved) {
    ends_.clear();
    ends_.push_back({stir_.get(), POLLIN, 0});
    for (std::int32_t r = 0; r < num_ranks(); ++r) {
      if (r != rank_ && !peer_of(r).gone) ends_.push_back({control_.descriptor(r), POLLIN, 0});
    }
    for (std::int32_t r = 0; r < num_ranks(); ++r) {
      const short events = wanted(r);
      const NetStream& stream = peer_of(r).stream;
      if (events != 0) ends_.push_back({stream.fd(), stream.awaits(events), 0});
    }
    const Seconds waited = since(moved), left = (told_waiting_ ? patience_ : patience_ * 0.5) - waited;
    await(first_awaited());
    ::poll(ends_.data(), ends_.size(), static_cast<int>(std::clamp(left.count() * 1e3 + 1, 0.0, 60'000.0)));
    TRY(hear());
    mark_gone();
    const Seconds now = since(moved);
    if (!told_waiting_ && now >= patience_ * 0.5) tell_waiting(first_awaited());
    if (now < patience_ || data_came()) return {};
    const std::int32_t cause = control_.cause_of(first_awaited());
    return missing_rank(rank_, cause, exchange_.stamp, patience_, "");
  }

  short wanted(std::int32_t r) const {
    const Exchange& e = exchange_;
    short events = 0;
    for (std::size_t i = 0; i < e.out.size(); ++i) {
      if (e.out[i].to == r && !sent_[i].done) events |= POLLOUT;
    }
    bool first = true;  // only the first unfinished message from r can progress
    for (std::size_t i = 0; i < e.in.size() && first; ++i) {
      if (e.in[i].from != r || taken_[i].done) continue;
      first = false;
      if (ready(i)) events |= POLLIN;
    }
    return events;
  }

  // An ended control connection is always readable; it must not wake us again.
  void mark_gone() {
    for (std::size_t i = 1, r = 0; r < peers_.size(); ++r) {
      if (static_cast<std::int32_t>(r) == rank_ || peers_[r].gone) continue;
      const pollfd& end = ends_[i++];
      std::byte none;
      if ((end.revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
        peers_[r].gone =
            control_.has_ended(static_cast<std::int32_t>(r)) || ::recv(end.fd, &none, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
      }
    }
  }

  bool data_came() const {
    return std::any_of(ends_.begin() + 1, ends_.end(), [&](const pollfd& end) {
      return end.revents != 0 &&
             std::any_of(peers_.begin(), peers_.end(), [&](const Peer& peer) { return peer.stream.fd() == end.fd; });
    });
  }

  void tell_waiting(std::int32_t peer) {
    told_waiting_ = peer >= 0;
    control_.tell_waiting(peer);
  }

  // The connection ended. If its rank, or another, reported an error before, that is the error.
  Error lost(std::int32_t peer, const MessageStamp& stamp) {
    {
      const std::lock_guard lock(aborting_);
      if (aborted_) return *aborted_;
    }
    if (std::optional<Error> told = control_.last_words(peer)) return *told;
    return lost_rank(rank_, peer, stamp, "it has left, or its process or host has ended");
  }

  Seconds patience_;
  Fd stir_;
  TcpControl control_;
  std::vector<Staging> staging_;
  std::vector<pollfd> ends_;
  bool told_waiting_ = false;
  std::mutex aborting_;
  std::optional<Error> aborted_;
};

}  // namespace

Result<std::unique_ptr<Transport>> tcp_transport(RendezvousClient& rendezvous, std::int32_t rank,
                                                 std::int32_t num_ranks, const TcpOptions& options) {
  if (rank < 0 || rank >= num_ranks) { return error(ErrorKind::invalid, "rank {} among {} ranks", rank, num_ranks); }
  TcpLinks links = TRY(connect_ranks(rendezvous, rank, num_ranks, options.mesh));
  Fd stir(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (stir.get() < 0) return os_error(errno, "make an event descriptor");
  return std::unique_ptr<Transport>(
      std::make_unique<TcpTransport>(std::move(links), rank, options.patience, std::move(stir)));
}

}  // namespace systole
