#pragma once
// Fault injection for tests and rehearsals: a slow link, a lost message, a collective that differs from the other
// ranks'. It wraps a transport and a communicator only where faults are requested, so it costs nothing elsewhere.

#include <atomic>
#include <memory>
#include <vector>

#include "execute/runtime/communicator.h"
#include "execute/runtime/transport.h"
#include "ground/base/clock.h"

namespace systole {

struct CommFaults {
  std::atomic<std::int64_t> step{0};  // current step; the caller keeps it up to date
  Seconds link;                       // extra delay of each exchange; 0: none
  std::int64_t link_every = 1, link_from = 0;
  std::int64_t lose_at = 0, mismatch_at = 0;  // a step; 0: never
  bool any() const { return link > Seconds() || lose_at > 0 || mismatch_at > 0; }
};

// All arguments must outlive the result.
std::unique_ptr<Transport> faulty_transport(Transport& inner, const CommFaults& faults, Clock& clock);
std::unique_ptr<Communicator> faulty_communicator(Communicator& inner, const CommFaults& faults);

}  // namespace systole
