#pragma once
// What the connections of a balancer share. For balancer.cc and forwarded_request.cc alone.

#include <array>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "execute/serve/balance/balancer.h"
#include "execute/serve/balance/replica_choice.h"

namespace systole {

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
  int canary_percent = 0;                      // 0: there is none; otherwise the last replica is the canary
  std::uint64_t dealt = 0;                     // requests of which the canary has its share
  std::array<VersionCounts, 2> versions = {};  // stable, canary

  bool is_canary(int replica) const { return canary_percent > 0 && replica == stable(); }
  int stable() const { return static_cast<int>(replicas.size()) - (canary_percent > 0 ? 1 : 0); }
  int stable_ready() const { return choice.ready() - (canary_percent > 0 && choice.is_ready(stable()) ? 1 : 0); }

  // Whether the next request is of the canary's share, which is spread evenly: of 10% every tenth one.
  bool deal_canary() {
    const std::lock_guard lock(mutex);
    const auto percent = static_cast<std::uint64_t>(canary_percent);
    const std::uint64_t before = dealt++ * percent / 100;
    return dealt * percent / 100 > before;
  }

  // `of_canary`: it is of the canary's share, which a stable replica gets if the canary cannot; never the other way.
  std::optional<Place> choose(const RequestCost& cost, std::vector<int> tried, bool of_canary) {
    const std::lock_guard lock(mutex);
    std::optional<int> chosen;
    if (canary_percent > 0) {
      std::vector<int> others = tried;
      for (int i = 0; i < stable(); ++i) others.push_back(i);
      if (of_canary) chosen = choice.choose({.tokens = cost.tokens}, others);  // its prefix stays where it was
      tried.push_back(stable());
    }
    if (!chosen) chosen = choice.choose(cost, tried);
    if (!chosen) return {};
    Replica& replica = replicas[static_cast<std::size_t>(*chosen)];
    ++replica.open;
    return Place{*chosen, replica.begun, *replica.address, replica.token, replica.model};
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
  // `change` is called with the counts of the replica's version.
  template <typename Change>
  void count_version(int replica, Change change) {
    const std::lock_guard lock(mutex);
    change(versions[is_canary(replica) ? 1 : 0]);
  }
  void count(std::int64_t BalancerCounts::*of) {
    const std::lock_guard lock(mutex);
    ++(counts.*of);
  }
};

}  // namespace systole
