#pragma once
// What the connections of a balancer share. Part of Balancer.

#include <array>
#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "execute/serve/balance/balancer.h"
#include "execute/serve/balance/replica_choice.h"
#include "ground/net/http_reply_reader.h"

namespace systole {

// It has no place, and another replica may have one.
inline bool is_refusal(int status) { return status == 429 || status == 503; }
// It is passed on as it comes.
inline bool is_stream(const HttpReplyHead& head) { return !head.length && !is_refusal(head.status); }
inline Seconds seconds_since(std::chrono::steady_clock::time_point begin) {
  return Seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
}

struct Balancer::State {
  struct Replica {
    std::optional<NetAddress> address;  // nothing: it is retired
    std::string token, model;
    std::uint64_t begun = 0;  // how often; what an earlier one replies says nothing about this one
    bool is_asked = false;    // whether it is ready
    int unanswered = 0;       // of these questions, the last ones, since one that could not be asked
    int open = 0;             // requests under way
    int left = 0;             // the same at those that stood here before
  };
  // One attempt of a request.
  struct Place {
    int replica = 0;
    std::uint64_t begun = 0;
    NetAddress address;
    std::string token, model;
  };
  enum Version { kStable, kCanary, kShadow };
  static constexpr std::int64_t kMostShadowed = 32;  // requests under way at the shadow; one more is dropped
  struct ShadowCounts {
    std::int64_t open = 0;     // under way
    std::int64_t dropped = 0;  // that the shadow was not sent, or had no place for
    std::int64_t same = 0, different = 0;
  };
  // Of the attempts at the replicas of one version, but for those that were refused for want of a place.
  struct VersionCounts {
    std::int64_t requests = 0;
    std::int64_t errors = 0;   // no answer, a part of one, or status 5xx
    std::int64_t answers = 0;  // with status 200, complete
    Seconds answered_in{};     // all of these
    std::int64_t streams = 0;  // that have begun
    Seconds first_piece_in{};  // all of these
  };

  HttpUpstreams& upstreams;
  std::mutex mutex = {};  // guards what follows
  ReplicaChoice choice;
  std::vector<Replica> replicas;
  BalancerCounts counts = {};
  int canary_percent = 0, shadow_percent = 0;  // 0: there is none; otherwise they are the last replicas, in this order
  std::uint64_t canary_dealt = 0, shadow_dealt = 0;  // requests of which each has its share
  std::array<VersionCounts, 3> versions = {};
  ShadowCounts shadow = {};

  int stable() const { return static_cast<int>(replicas.size()) - (canary_percent > 0) - (shadow_percent > 0); }
  Version version_of(int replica) const {
    if (replica < stable()) return kStable;
    return canary_percent > 0 && replica == stable() ? kCanary : kShadow;
  }
  int stable_ready() const {
    int ready = 0;
    for (int i = 0; i < stable(); ++i) ready += choice.is_ready(i) ? 1 : 0;
    return ready;
  }

  // Whether the next request is of a share, which is spread evenly: of 10% every tenth one.
  bool deal(int percent, std::uint64_t& dealt) {
    if (percent == 0) return false;
    const std::lock_guard lock(mutex);
    const auto of_hundred = static_cast<std::uint64_t>(percent);
    const std::uint64_t before = dealt++ * of_hundred / 100;
    return dealt * of_hundred / 100 > before;
  }

  // A request of the canary's share goes to a stable replica if the canary cannot; never the other way.
  std::optional<Place> choose(const RequestCost& cost, const std::vector<int>& tried, Version version) {
    const std::lock_guard lock(mutex);
    std::optional<int> chosen;
    if (version == kCanary) chosen = choice.choose({.tokens = cost.tokens}, and_others(tried, kCanary));
    if (!chosen) chosen = choice.choose(cost, and_others(tried, kStable));
    return chosen ? std::optional(take(*chosen)) : std::nullopt;
  }
  // Nothing: it is not ready or too far behind, and the request is dropped.
  std::optional<Place> choose_shadow(const RequestCost& cost) {
    const std::lock_guard lock(mutex);
    std::optional<int> chosen;
    if (shadow.open < kMostShadowed) chosen = choice.choose({.tokens = cost.tokens}, and_others({}, kShadow));
    ++(chosen ? shadow.open : shadow.dropped);
    return chosen ? std::optional(take(*chosen)) : std::nullopt;
  }
  void give_back(const Place& place, std::int64_t tokens) {
    const std::lock_guard lock(mutex);
    Replica& asked = replicas[static_cast<std::size_t>(place.replica)];
    --(asked.begun == place.begun ? asked.open : asked.left);
    choice.give_back(place.replica, tokens);
  }
  void set_ready(int replica, std::uint64_t begun, bool ready) {
    const std::lock_guard lock(mutex);
    const Replica& asked = replicas[static_cast<std::size_t>(replica)];
    if (asked.begun == begun && asked.address) choice.set_ready(replica, ready);
  }
  // An attempt has ended, `after` it was sent; `status`: of its answer.
  void count_attempt(int replica, const Status& how, int status, Seconds after) {
    if (!how.ok() && how.error().kind == ErrorKind::busy) return;  // it was not sent
    if (how.ok() && is_refusal(status)) return;
    const std::lock_guard lock(mutex);
    VersionCounts& of = versions[version_of(replica)];
    ++of.requests;
    if (!how.ok() || status >= 500) ++of.errors;
    if (!how.ok() || status != 200) return;
    ++of.answers;
    of.answered_in += after;
  }
  void count_stream(int replica, Seconds after) {
    const std::lock_guard lock(mutex);
    VersionCounts& of = versions[version_of(replica)];
    ++of.streams;
    of.first_piece_in += after;
  }
  void count(std::int64_t BalancerCounts::*of) {
    const std::lock_guard lock(mutex);
    ++(counts.*of);
  }

 private:
  // Those that were tried, and all of other versions.
  std::vector<int> and_others(std::vector<int> tried, Version version) const {
    for (int i = 0; i < static_cast<int>(replicas.size()); ++i)
      if (version_of(i) != version) tried.push_back(i);
    return tried;
  }
  Place take(int chosen) {
    Replica& replica = replicas[static_cast<std::size_t>(chosen)];
    ++replica.open;
    return {chosen, replica.begun, *replica.address, replica.token, replica.model};
  }
};

}  // namespace systole
