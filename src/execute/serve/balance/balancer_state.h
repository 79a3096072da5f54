#pragma once
// What the connections of a balancer share. For balancer.cc and forwarded_request.cc alone.

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
    std::string token;
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
    std::string token;
  };

  HttpUpstreams& upstreams;
  std::mutex mutex = {};  // guards what follows
  ReplicaChoice choice;
  std::vector<Replica> replicas;
  BalancerCounts counts = {};

  std::optional<Place> choose(const RequestCost& cost, const std::vector<int>& tried) {
    const std::lock_guard lock(mutex);
    const std::optional<int> chosen = choice.choose(cost, tried);
    if (!chosen) return {};
    Replica& replica = replicas[static_cast<std::size_t>(*chosen)];
    ++replica.open;
    return Place{*chosen, replica.begun, *replica.address, replica.token};
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
  void count(std::int64_t BalancerCounts::*of) {
    const std::lock_guard lock(mutex);
    ++(counts.*of);
  }
};

}  // namespace systole
