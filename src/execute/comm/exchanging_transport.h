#pragma once
// What transports that move an exchange on piece by piece have in common: which exchange is under way, how far each of
// its messages is, and that messages between two ranks go one after the other. How bytes move, and how to wait for
// them, is the transport's own.
//
// Peer: `bool blocked`, that a message before this one has not ended. Progress: `bool done`, that the message has.

#include <optional>
#include <vector>

#include "execute/runtime/transport.h"
#include "ground/base/error.h"

namespace systole {

template <typename Peer, typename Progress>
class ExchangingTransport : public Transport {
 public:
  std::int32_t rank() const override { return rank_; }
  std::int32_t num_ranks() const override { return static_cast<std::int32_t>(peers_.size()); }
  Bytes bytes_written() const override { return Bytes(written_); }
  void observe(WaitObserver* observer) override { observer_ = observer; }

  Status begin(const Exchange& exchange) override {
    if (failed_) return *failed_;
    CHECK(left_ == 0, "rank {} begins an exchange before the last one has ended", rank_);
    exchange_ = exchange;
    sent_.assign(exchange.out.size(), {});
    taken_.assign(exchange.in.size(), {});
    left_ = exchange.out.size() + exchange.in.size();
    return {};
  }

  Result<bool> advance(bool wait) override {
    if (failed_) return *failed_;
    Result<bool> ended = wait ? play() : look();
    if (!ended.ok()) {
      failed_ = ended.error();
      left_ = 0;
      tell(*failed_);
    }
    return ended;
  }

 protected:
  explicit ExchangingTransport(std::int32_t rank) : rank_(rank) {}

  virtual Result<bool> play() = 0;                                    // until the exchange has ended
  virtual Result<bool> look() = 0;                                    // what can be done now; whether it has ended
  virtual void tell(const Error& why) = 0;                            // the peers, that it failed
  virtual Result<bool> write(const Outgoing&, Progress&, Peer&) = 0;  // as much as there is room for; whether any
  virtual Result<bool> take(const Incoming&, Progress&, Peer&) = 0;   // as much as has come; whether any

  // Writes and takes what can be written and taken now; whether that was anything.
  Result<bool> pass() {
    bool any = false;
    for (Peer& peer : peers_) peer.blocked = false;
    for (std::size_t i = 0; i < sent_.size(); ++i) {
      Peer& peer = peer_of(exchange_.out[i].to);
      if (sent_[i].done || peer.blocked) continue;
      any |= TRY(write(exchange_.out[i], sent_[i], peer));
      peer.blocked = !sent_[i].done;
      left_ -= sent_[i].done ? 1 : 0;
    }
    for (Peer& peer : peers_) peer.blocked = false;
    for (std::size_t i = 0; i < taken_.size(); ++i) {
      Peer& peer = peer_of(exchange_.in[i].from);
      if (taken_[i].done || peer.blocked) continue;
      if (ready(i)) any |= TRY(take(exchange_.in[i], taken_[i], peer));
      peer.blocked = !taken_[i].done;
      left_ -= taken_[i].done ? 1 : 0;
    }
    return any;
  }

  // Whether incoming message i may begin.
  bool ready(std::size_t i) const {
    const int after = exchange_.in[i].after;
    return after < 0 || taken_[static_cast<std::size_t>(after)].done;
  }

  // A rank without which this exchange cannot end; -1: there is none.
  std::int32_t first_awaited() const {
    for (std::size_t i = 0; i < taken_.size(); ++i) {
      if (!taken_[i].done && ready(i)) return exchange_.in[i].from;
    }
    for (std::size_t i = 0; i < sent_.size(); ++i) {
      if (!sent_[i].done) return exchange_.out[i].to;
    }
    return -1;
  }

  // For who watches this rank: it waits for `peer`, -1: for nobody. Whether that is news.
  bool await(std::int32_t peer) {
    if (peer == awaited_) return false;
    awaited_ = peer;
    if (observer_ == nullptr) return true;
    bool to_send = true;
    for (std::size_t i = 0; i < taken_.size(); ++i)
      to_send = to_send && (taken_[i].done || exchange_.in[i].from != peer);
    peer < 0 ? observer_->goes_on() : observer_->waits(peer, to_send, exchange_.stamp);
    return true;
  }

  Peer& peer_of(std::int32_t r) { return peers_[static_cast<std::size_t>(r)]; }

  const std::int32_t rank_;
  std::vector<Peer> peers_;             // by rank
  Exchange exchange_;                   // that was begun
  std::size_t left_ = 0;                // messages of it that have not ended
  std::vector<Progress> sent_, taken_;  // as long as the longest exchange so far
  std::int64_t written_ = 0;

 private:
  std::int32_t awaited_ = -1;
  WaitObserver* observer_ = nullptr;
  std::optional<Error> failed_;
};

}  // namespace systole
