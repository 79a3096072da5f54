#pragma once
// Base of transports that move an exchange piece by piece. It tracks the current exchange and the progress of each
// message, and keeps messages between two ranks in order. The subclass moves the bytes and waits for them.
//
// Peer has `bool blocked`: an earlier message to or from it has not ended. Progress has `bool done`: the message has
// ended.

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

  virtual Result<bool> play() = 0;          // runs until the exchange has ended
  virtual Result<bool> look() = 0;          // does what is possible now; true if the exchange has ended
  virtual void tell(const Error& why) = 0;  // tells the peers that it failed
  virtual Result<bool> write(const Outgoing&, Progress&, Peer&) = 0;  // as much as there is room for; true if any
  virtual Result<bool> take(const Incoming&, Progress&, Peer&) = 0;   // as much as has arrived; true if any

  // Writes and takes what is possible now; true if that was anything.
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

  // True if incoming message i may begin.
  bool ready(std::size_t i) const {
    const int after = exchange_.in[i].after;
    return after < 0 || taken_[static_cast<std::size_t>(after)].done;
  }

  // A rank that this exchange waits for; -1: none.
  std::int32_t first_awaited() const {
    for (std::size_t i = 0; i < taken_.size(); ++i) {
      if (!taken_[i].done && ready(i)) return exchange_.in[i].from;
    }
    for (std::size_t i = 0; i < sent_.size(); ++i) {
      if (!sent_[i].done) return exchange_.out[i].to;
    }
    return -1;
  }

  // Reports to the observer that this rank waits for `peer`; -1: for nobody. True if that is a change.
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
  Exchange exchange_;                   // the current or last exchange
  std::size_t left_ = 0;                // number of its messages that have not ended
  std::vector<Progress> sent_, taken_;  // per message of the exchange
  std::int64_t written_ = 0;

 private:
  std::int32_t awaited_ = -1;
  WaitObserver* observer_ = nullptr;
  std::optional<Error> failed_;
};

}  // namespace systole
