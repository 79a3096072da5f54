#pragma once
// The full estimate of one candidate on one offer, from its Programs. Every answer of a search is one.

#include "predict/plan/search.h"

namespace systole {

// The exact time of a step and a lower bound on memory. A candidate that cannot be composed is counted from its
// Programs, and has no bound. Errors: as Composer::counted.
struct ComposedTotals {
  Seconds step;
  Bytes memory;
};
Result<ComposedTotals> composed_totals(const Composer& composer, const Candidate& candidate,
                                       const HardwareOption& offered);

// Leaves `offer` at 0. `asked`: the composer's, or a variant of it. Errors: as programs_of.
Result<Estimated> estimate_candidate(const Workload& asked, const Composer& composer, const Candidate& candidate,
                                     const HardwareOption& offered, const StorageWish& wish);

// Sets what the best of the offer's storages adds to the devices' step, and what follows from both together.
void set_storage(Estimated& estimated, const HardwareOption& offered, const StorageWish& wish);

}  // namespace systole
