#include "execute/comm/ring_transport.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <vector>

#include "execute/comm/exchanging_transport.h"
#include "execute/comm/peer_watch.h"

namespace systole {
namespace {

using SteadyClock = std::chrono::steady_clock;
using Instant = SteadyClock::time_point;

constexpr std::int64_t kPiece = 64 << 10;  // bytes published at a time; half of a core's L2 holds several
constexpr Seconds kSlice{0.1};             // between liveness checks of the peers

std::int64_t filled_up(std::int64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }
Seconds since(Instant then) { return Seconds(std::chrono::duration<double>(SteadyClock::now() - then).count()); }

// Local view of the two rings shared with a peer.
struct RingPeer {
  // written, known_read: ring to the peer; read, known_written, told_read: ring from the peer. The known_ counts are
  // the peer's words as last read; told_read is what we last published.
  std::int64_t written = 0, known_read = 0;
  std::int64_t read = 0, known_written = 0, told_read = 0;
  bool empty() const { return known_written == read; }  // by the last known count
  bool blocked = false;
};
// Progress of a message. -1: its header has not passed.
struct RingProgress {
  std::int64_t at = -1;
  bool done = false;
};

class RingTransport final : public ExchangingTransport<RingPeer, RingProgress> {
  using Peer = RingPeer;
  using Progress = RingProgress;

 public:
  RingTransport(std::shared_ptr<Segment> segment, std::int32_t rank, const RingOptions& options)
      : ExchangingTransport(rank),
        segment_(std::move(segment)),
        watch_(segment_, rank),
        patience_(options.patience),
        spin_(options.spin) {
    peers_.resize(static_cast<std::size_t>(segment_->num_ranks()));
  }
  ~RingTransport() override {
    RankBlock& mine = segment_->rank(rank_);
    mine.state.store(RankBlock::left);
    for (std::int32_t r = 0; r < num_ranks(); ++r) {
      if (r != rank_) segment_->wake(r);
    }
  }

  const char* name() const override { return segment_->private_words() ? "loopback" : "shm"; }

  void abort(const std::string& why) override { segment_->end(error(ErrorKind::interrupted, "{}", why)); }

 private:
  void tell(const Error& why) override { segment_->end(why); }

  Result<bool> play() override {
    Instant moved = SteadyClock::now();
    if (segment_->ended()) return segment_->ending();
    for (;;) {
      const bool any = TRY(pass());
      if (any || left_ == 0) say_awaited(-1);
      if (left_ == 0) return true;
      if (any) {
        moved = SteadyClock::now();
        continue;
      }
      if (segment_->ended()) return segment_->ending();
      if (since(moved) < spin_) {
        sched_yield();  // the awaited rank may need this core
        continue;
      }
      TRY(rest(moved));
    }
  }

  Result<bool> look() override {
    if (segment_->ended()) return segment_->ending();
    TRY(pass());
    return left_ == 0;
  }

  // Writes as much of the message as there is room for; true if any.
  Result<bool> write(const Outgoing& message, Progress& progress, Peer& peer) override {
    const std::int64_t size = segment_->ring_bytes(), bytes = message.bytes.count();
    RingBlock& ring = segment_->ring(rank_, message.to);
    std::byte* const data = segment_->ring_data(rank_, message.to);
    bool any = false;
    for (;;) {
      std::int64_t room = size - (peer.written - peer.known_read);
      if (room < std::clamp(filled_up(bytes - std::max<std::int64_t>(progress.at, 0)) + kLine, 2 * kLine, size / 2)) {
        TRY(learn(peer.known_read, ring.read, peer.written - size, peer.written, message.to));
        room = size - (peer.written - peer.known_read);
      }
      if (room < 2 * kLine) return any;
      if (progress.at < 0) {
        const MessageHeader header{exchange_.stamp_of(message).packed(), static_cast<std::uint64_t>(bytes)};
        std::memcpy(data + peer.written % size, &header, sizeof header);
        peer.written += kLine, room -= kLine;
        progress.at = 0;
      }
      const std::int64_t place = peer.written % size;
      const std::int64_t piece = std::min({bytes - progress.at, room, size - place, kPiece});
      copy_out(message, Bytes(progress.at), {data + place, static_cast<std::size_t>(piece)});
      progress.at += piece;
      peer.written += filled_up(piece);
      written_ += piece;
      ring.written.store(static_cast<std::uint64_t>(peer.written));
      tell_receiver(ring, message.to, peer.written - peer.known_read > size / 2);
      any = true;
      if (progress.at == bytes) {
        progress.done = true;
        return any;
      }
    }
  }

  Result<bool> take(const Incoming& message, Progress& progress, Peer& peer) override {
    const MessageStamp& stamp = exchange_.stamp_of(message);
    const std::int64_t size = segment_->ring_bytes(), bytes = message.bytes.count();
    RingBlock& ring = segment_->ring(message.from, rank_);
    const std::byte* const data = segment_->ring_data(message.from, rank_);
    bool any = false;
    for (;;) {
      if (peer.empty()) TRY(learn_written(peer, message.from));
      const std::int64_t there = peer.known_written - peer.read;
      if (there == 0) return any;
      if (progress.at < 0) {
        MessageHeader header;
        std::memcpy(&header, data + peer.read % size, sizeof header);
        const MessageStamp found = MessageStamp::unpacked(header.stamp);
        if (header.stamp != stamp.packed() || header.bytes != static_cast<std::uint64_t>(bytes)) {
          return mismatched_message(rank_, stamp, message.bytes, message.from, found,
                                    Bytes(static_cast<std::int64_t>(header.bytes)), exchange_.names);
        }
        peer.read += kLine;
        progress.at = 0;
        progress.done = bytes == 0;
        if (!progress.done) continue;
        tell_sender(ring, peer, message.from);
        return true;
      }
      const std::int64_t place = peer.read % size;
      const std::int64_t piece = std::min({bytes - progress.at, there, size - place});
      take_piece(message, Bytes(progress.at), {data + place, static_cast<std::size_t>(piece)});
      progress.at += piece;
      peer.read += filled_up(piece);
      progress.done = progress.at == bytes;
      any = true;
      tell_sender(ring, peer, message.from);
      if (progress.done) return any;
    }
  }

  // Reads the peer's count. A count outside [least, most] cannot come from an honest peer.
  Status learn(std::int64_t& known, const std::atomic<std::uint64_t>& word, std::int64_t least, std::int64_t most,
               std::int32_t peer) {
    const auto now = static_cast<std::int64_t>(word.load());
    if (now < std::max(known, least) || now > most || now % kLine != 0) {
      return error(ErrorKind::corrupt,
                   "rank {} found the ring that it shares with rank {} damaged: {} B counted after {}", rank_, peer,
                   now, known);
    }
    known = now;
    return {};
  }

  Status learn_written(Peer& peer, std::int32_t from) {
    return learn(peer.known_written, segment_->ring(from, rank_).written, peer.read, peer.read + segment_->ring_bytes(),
                 from);
  }

  void tell_receiver(RingBlock& ring, std::int32_t to, bool much) {
    if (ring.waits_for_bytes.load() != 0 && ring.waits_for_bytes.exchange(0) != 0) segment_->count_down(to);
    if (much && segment_->rank(to).asleep.load() > 0) segment_->wake(to);
  }

  // Publishing the count costs the sender a cache miss, so it is done only now and then, and before waiting.
  void tell_sender(RingBlock& ring, Peer& peer, std::int32_t from) {
    if (peer.read - peer.told_read >= segment_->ring_bytes() / 4 || peer.empty()) {
      ring.read.store(static_cast<std::uint64_t>(peer.read));
      peer.told_read = peer.read;
      if (ring.waits_for_room.load() != 0 && ring.waits_for_room.exchange(0) != 0) segment_->wake(from);
    }
  }

  // Called when nothing is possible now: sleeps until something is, checks the peers, and reports the rank it waits
  // for.
  Status rest(Instant moved) {
    const Exchange& e = exchange_;
    RankBlock& mine = segment_->rank(rank_);
    std::int32_t rings = 0;
    bool stir = false;  // something arrived while we prepared to sleep
    Status known;
    const auto each = [&](const auto& visit) {
      for (Peer& peer : peers_) peer.blocked = false;
      for (std::size_t i = 0; i < e.in.size(); ++i) {
        Peer& peer = peer_of(e.in[i].from);
        if (taken_[i].done || peer.blocked) continue;
        peer.blocked = true;
        visit(e.in[i].from, peer, i);
      }
    };
    each([&](std::int32_t from, Peer& peer, std::size_t i) {
      if (known.ok()) known = learn_written(peer, from);
      if (!peer.empty())
        stir |= ready(i);  // a message that must wait for another keeps nobody awake
      else
        ++rings;
    });
    TRY(known);
    mine.asleep.store(std::max(rings, 1));
    each([&](std::int32_t from, Peer& peer, std::size_t i) {
      if (!peer.empty()) return;
      RingBlock& ring = segment_->ring(from, rank_);
      ring.waits_for_bytes.store(1);
      if (static_cast<std::int64_t>(ring.written.load()) == peer.known_written) return;
      if (ready(i)) stir = true;
      if (ring.waits_for_bytes.exchange(0) != 0) segment_->count_down(rank_);
    });
    for (std::size_t i = 0; i < e.out.size(); ++i) {
      if (sent_[i].done) continue;
      RingBlock& ring = segment_->ring(rank_, e.out[i].to);
      ring.waits_for_room.store(1);
      stir |= static_cast<std::int64_t>(ring.read.load()) != peer_of(e.out[i].to).known_read;
    }
    if (!stir) say_awaited(first_awaited());
    if (!stir && !segment_->ended()) segment_->sleep(rank_, std::min(kSlice, patience_));
    mine.asleep.store(0);
    if (segment_->ended()) return segment_->ending();
    if (stir || since(moved) < kSlice) return {};
    TRY(look_after_the_others());
    if (since(moved) >= patience_) return impatient();
    return {};
  }

  // Kept until something moves, and after an error: peers read it when they look for the cause.
  void say_awaited(std::int32_t r) {
    if (await(r)) segment_->rank(rank_).waits_for.store(r);
  }

  Status look_after_the_others() {
    for (std::int32_t r = 0; r < num_ranks(); ++r) {
      if (r == rank_ || !needs(r)) continue;
      if (const std::optional<std::string> why = watch_.gone(r)) return lost_rank(rank_, r, exchange_.stamp, *why);
    }
    return {};
  }

  bool needs(std::int32_t r) {
    const Exchange& e = exchange_;
    // Its last messages may still be in the ring.
    const bool silent = static_cast<std::int64_t>(segment_->ring(r, rank_).written.load()) == peer_of(r).read;
    for (std::size_t i = 0; i < e.in.size(); ++i) {
      if (e.in[i].from == r && !taken_[i].done && silent) return true;
    }
    for (std::size_t i = 0; i < e.out.size(); ++i) {
      if (e.out[i].to == r && !sent_[i].done) return true;
    }
    return false;
  }

  Error impatient() {
    const std::int32_t cause = watch_.cause_behind(first_awaited());
    return missing_rank(rank_, cause, exchange_.stamp, patience_, watch_.doing(cause));
  }

  std::shared_ptr<Segment> segment_;
  PeerWatch watch_;
  const Seconds patience_, spin_;
};

}  // namespace

Result<std::unique_ptr<Transport>> ring_transport(std::shared_ptr<Segment> segment, std::int32_t rank,
                                                  const RingOptions& options) {
  if (rank < 0 || rank >= segment->num_ranks())
    return error(ErrorKind::invalid, "rank {} of {}", rank, segment->num_ranks());
  RankBlock& mine = segment->rank(rank);
  std::int32_t nobody = 0;
  if (!mine.pid.compare_exchange_strong(nobody, getpid()))
    return error(ErrorKind::busy, "there is a rank {} already: process {}", rank, nobody);
  mine.waits_for.store(-1);
  mine.state.store(RankBlock::present);
  return std::unique_ptr<Transport>(std::make_unique<RingTransport>(std::move(segment), rank, options));
}

Result<std::vector<std::unique_ptr<Transport>>> loopback(std::int32_t num_ranks, const RingOptions& options,
                                                         std::optional<std::int64_t> ring_bytes) {
  const std::shared_ptr<Segment> segment =
      TRY(Segment::in_process(num_ranks, ring_bytes.value_or(ring_bytes_among(num_ranks))));
  std::vector<std::unique_ptr<Transport>> ranks;
  for (std::int32_t r = 0; r < num_ranks; ++r) ranks.push_back(TRY(ring_transport(segment, r, options)));
  return ranks;
}

}  // namespace systole
