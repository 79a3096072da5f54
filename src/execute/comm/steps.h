#pragma once
// A collective as one rank runs it: a list of steps. Each step is local work followed by one exchange.

#include <functional>
#include <vector>

#include "execute/runtime/communicator.h"
#include "execute/runtime/transport.h"

namespace systole {

struct CollectiveStep {
  int number = 0;                             // the algorithm's step; carried in the stamp
  std::vector<std::function<void()>> before;  // local copies and conversions, in order
  std::vector<Outgoing> out;
  std::vector<Incoming> in;
};

// The memory of a collective on one rank.
struct CollectivePlaces {
  const std::byte* from = nullptr;
  std::byte* into = nullptr;
  std::byte* workspace = nullptr;
};

// The steps of rank `me` of `group` (ranks of the transport, in the group's order). The last step may have local work
// only.
// Errors: as Communicator::prepare.
Result<std::vector<CollectiveStep>> steps_of(const CollectiveCall& call, const Collective& collective,
                                             const std::vector<std::int64_t>& group, std::int64_t me,
                                             const CollectivePlaces& places);

}  // namespace systole
