#pragma once
// Ranks that err on purpose, for tests and rehearsals: a link that is slow, a message that is lost, a collective that
// is not the one the others run. Wrapped around a transport and a communicator where faults are asked for, and nowhere
// else, so that they cost nothing.

#include <atomic>
#include <memory>
#include <vector>

#include "execute/runtime/communicator.h"
#include "execute/runtime/transport.h"
#include "ground/base/clock.h"

namespace systole {

struct CommFaults {
  std::atomic<std::int64_t> step{0};  // that runs; kept by who knows it
  Seconds link;                       // that each exchange takes longer to send; 0: none
  std::int64_t link_every = 1, link_from = 0;
  std::int64_t lose_at = 0, mismatch_at = 0;  // a step; 0: never
  bool any() const { return link > Seconds() || lose_at > 0 || mismatch_at > 0; }
};

// All must outlive what is made.
std::unique_ptr<Transport> faulty_transport(Transport& inner, const CommFaults& faults, Clock& clock);
std::unique_ptr<Communicator> faulty_communicator(Communicator& inner, const CommFaults& faults);

}  // namespace systole
