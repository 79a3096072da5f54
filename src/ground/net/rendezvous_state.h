#pragma once
// The state of a rendezvous, without sockets: keys, counters, barriers, leases and waiting requests. A state machine:
// requests and the time go in, replies come out, some of them to other clients.
//
// Time is the server's own steady clock. Only durations are sent over the wire, so clocks of machines may differ by any
// amount. Generations: a request carries its client's generation. When a later one begins (fence), all that the earlier
// one wrote, holds or waits for is dropped, and its clients are told that they are stale. Keys, values, their total
// size and members are bounded. One thread.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ground/base/units.h"
#include "ground/net/rendezvous_wire.h"

namespace systole {

struct RendezvousLimits {
  std::size_t key = 256, value = 64 * 1024;   // bytes of one key, of one value
  std::size_t total = 16 * 1024 * 1024;       // bytes of all keys, values and leases
  std::size_t places = 65'536;                // keys and leases, each
  std::int64_t members = 65'536;              // of one barrier
  std::uint32_t longest_wait_ms = 3'600'000;  // longer waits are cut to this
};

class RendezvousState {
 public:
  using ClientId = std::uint64_t;  // a connection; has at most one request in progress
  struct Answer {
    ClientId client;
    RendezvousReply reply;
  };

  explicit RendezvousState(RendezvousLimits limits = {}) : limits_(limits) {}

  // The replies that this request causes: to the client, unless it must wait, and to those it wakes.
  std::vector<Answer> ask(ClientId client, const RendezvousRequest& request, Seconds now);
  std::vector<Answer> advance(Seconds now);  // replies to those whose wait has timed out
  void leave(ClientId client);               // its connection is closed: drops its waiting request
  std::optional<Seconds> next() const;       // when advance must be called next
  std::uint64_t generation() const { return generation_; }
  std::size_t waiting() const { return waiting_.size(); }

 private:
  struct Value {
    std::string text;
    std::uint64_t generation = 0;
  };
  struct Waiting {
    RendezvousRequest request;
    Seconds until{};
  };
  struct Barrier {  // with missing members
    std::int64_t members = 0;
    std::map<std::uint64_t, ClientId> here;
  };
  struct Held {
    std::uint64_t holder = 0, generation = 0;
    std::string who;
    Seconds until{};
  };
  using Answers = std::vector<Answer>;

  std::optional<std::string> complaint(const RendezvousRequest& request) const;
  RendezvousReply answer(const RendezvousRequest& request, Seconds now, Answers& others);
  bool put(const std::string& key, std::string text, std::uint64_t generation, Answers& others);
  void set(const RendezvousRequest& request, RendezvousReply& reply, Answers& others);
  void add(const RendezvousRequest& request, RendezvousReply& reply, Answers& others);
  void compare_and_set(const RendezvousRequest& request, RendezvousReply& reply, Answers& others);
  void erase(const RendezvousRequest& request, RendezvousReply& reply);
  void list(const RendezvousRequest& request, RendezvousReply& reply) const;
  void lease(const RendezvousRequest& request, RendezvousReply& reply, Seconds now);
  void list_leases(const RendezvousRequest& request, RendezvousReply& reply, Seconds now) const;
  void fence(const RendezvousRequest& request, RendezvousReply& reply, Answers& others);
  void wait(ClientId client, const RendezvousRequest& request, Seconds now, Answers& answers);
  void arrive(ClientId client, const RendezvousRequest& request, Seconds now, Answers& answers);
  RendezvousReply missing(const RendezvousRequest& request) const;
  void withdraw(ClientId client, const RendezvousRequest& request);
  bool has(const RendezvousRequest& request, RendezvousReply& reply) const;

  RendezvousLimits limits_;
  std::uint64_t generation_ = 0;
  std::size_t bytes_ = 0;
  std::map<std::string, Value> values_;
  std::map<std::string, Held> leases_;
  std::map<std::string, Barrier> barriers_;
  std::map<ClientId, Waiting> waiting_;
};

}  // namespace systole
