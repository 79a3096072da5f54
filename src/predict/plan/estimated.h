#pragma once
// The full estimate of one candidate on one offer, from its Programs. Every answer of a search is one.

#include "predict/plan/search.h"

namespace systole {

// Leaves `offer` at 0. Errors: as programs_of.
Result<Estimated> estimate_candidate(const Workload& asked, const Target& target, const Candidate& candidate,
                                     const HardwareOption& offered, const StorageWish& wish);

// Sets what the best of the offer's storages adds to the devices' step, and what follows from both together.
void set_storage(Estimated& estimated, const HardwareOption& offered, const StorageWish& wish);

}  // namespace systole
