#pragma once
// Which of several servers with the same model gets a request: the one with the fewest outstanding tokens, but if the
// prompt begins as an earlier one did, the one that had that, whose cache has its keys and values. That one may have up
// to twice the tokens of the least loaded and kMostBehind more. Without a clock or a network; one thread at a time.
//
//   ReplicaChoice choice(2);
//   choice.set_ready(0, true);
//   choice.set_ready(1, true);
//   const std::optional<int> replica = choice.choose(request_cost(body));  // 0 or 1
//   ...
//   choice.give_back(*replica, cost.tokens);  // when it is answered

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace systole {

// What a request asks of a replica, estimated from its bytes, without reading it: the balancer serves all connections
// with one thread, and the replica reads it anyway.
struct RequestCost {
  std::int64_t tokens = 1;                   // the prompt's bytes / 4, and the tokens that are asked for
  std::optional<std::uint64_t> prefix = {};  // a hash of how the prompt begins; nothing: it has none
};
// `body`: of a request of OpenAI's interface, JSON or not.
RequestCost request_cost(std::string_view body);

class ReplicaChoice {
 public:
  static constexpr std::int64_t kMostBehind = 2048;  // tokens

  explicit ReplicaChoice(int replicas);

  void set_ready(int replica, bool ready) { at(replica).ready = ready; }
  bool is_ready(int replica) const { return replicas_[static_cast<std::size_t>(replica)].ready; }
  std::int64_t tokens(int replica) const { return replicas_[static_cast<std::size_t>(replica)].tokens; }

  // A ready replica that is not among `tried`, to which the tokens then count; nothing: there is none.
  std::optional<int> choose(const RequestCost& cost, const std::vector<int>& tried = {});
  void give_back(int replica, std::int64_t tokens) { at(replica).tokens -= tokens; }
  // It begins anew: its cache is empty.
  void forget(int replica);

 private:
  struct Replica {
    bool ready = false;
    std::int64_t tokens = 0;  // outstanding
    std::uint64_t last = 0;   // when it got its last request: of equals, the one that waited longest is next
  };
  struct Prefix {
    std::uint64_t hash = 0;
    int replica = -1;
  };
  Replica& at(int replica) { return replicas_[static_cast<std::size_t>(replica)]; }

  std::vector<Replica> replicas_;
  std::vector<Prefix> prefixes_;  // a table of fixed size; a newer prefix takes the place of an older one
  std::uint64_t requests_ = 0;
};

}  // namespace systole
