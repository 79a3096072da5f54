#pragma once
// A collective as one rank plays it: a list of steps, each with what it does at home first, and then one exchange.

#include <functional>
#include <vector>

#include "execute/runtime/communicator.h"
#include "execute/runtime/transport.h"

namespace systole {

struct CollectiveStep {
  int number = 0;                             // of the algorithm, which the stamp carries
  std::vector<std::function<void()>> before;  // copies and conversions at home, in order
  std::vector<Outgoing> out;
  std::vector<Incoming> in;
};

// The memory of a collective on one rank.
struct CollectivePlaces {
  const std::byte* from = nullptr;
  std::byte* into = nullptr;
  std::byte* workspace = nullptr;
};

// For the rank at place `me` of `group` (ranks of the transport, in the group's order). The last step may have no
// messages, only work at home.
// Errors: as Communicator::prepare.
Result<std::vector<CollectiveStep>> steps_of(const CollectiveCall& call, const Collective& collective,
                                             const std::vector<std::int64_t>& group, std::int64_t me,
                                             const CollectivePlaces& places);

}  // namespace systole
