#pragma once
// What a rendezvous knows, without sockets: keys, counters, barriers, leases and who waits for them. A state machine:
// requests and the time go in, replies come out, some of them to others than the one who asked.
//
// Time is the server's own steady clock alone, and only durations come over the wire, so that clocks of machines may
// disagree by any amount. Generations: a request carries the one its asker belongs to; once a later one has begun
// (fence), whatever the earlier one wrote, holds or waits for is gone, and its askers are told that they are stale.
// Everything is bounded: keys, values, their sum, members. One thread.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ground/base/units.h"
#include "ground/net/rendezvous_wire.h"

namespace systole {

struct RendezvousLimits {
  std::size_t key = 256, value = 64 * 1024;   // bytes of one
  std::size_t total = 16 * 1024 * 1024;       // bytes of all keys, values and leases
  std::size_t places = 65'536;                // keys and leases, each
  std::int64_t members = 65'536;              // of a barrier
  std::uint32_t longest_wait_ms = 3'600'000;  // a longer one is cut to it
};

class RendezvousState {
 public:
  using Asker = std::uint64_t;  // a connection; has one request under way at most
  struct Answer {
    Asker asker;
    RendezvousReply reply;
  };

  explicit RendezvousState(RendezvousLimits limits = {}) : limits_(limits) {}

  // The replies that this request brings about: to the asker, unless it waits, and to those it wakes.
  std::vector<Answer> ask(Asker asker, const RendezvousRequest& request, Seconds now);
  std::vector<Answer> advance(Seconds now);  // replies to those whose wait is over
  void leave(Asker asker);                   // its connection is gone: it waits for nothing more
  std::optional<Seconds> next() const;       // when advance has something to do
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
  struct Meeting {  // a barrier that not all have come to
    std::int64_t members = 0;
    std::map<std::uint64_t, Asker> here;
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
  void wait(Asker asker, const RendezvousRequest& request, Seconds now, Answers& answers);
  void arrive(Asker asker, const RendezvousRequest& request, Seconds now, Answers& answers);
  RendezvousReply missing(const RendezvousRequest& request) const;
  void withdraw(Asker asker, const RendezvousRequest& request);
  bool has(const RendezvousRequest& request, RendezvousReply& reply) const;

  RendezvousLimits limits_;
  std::uint64_t generation_ = 0;
  std::size_t bytes_ = 0;
  std::map<std::string, Value> values_;
  std::map<std::string, Held> leases_;
  std::map<std::string, Meeting> meetings_;
  std::map<Asker, Waiting> waiting_;
};

}  // namespace systole
