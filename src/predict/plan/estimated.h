#pragma once
// The full estimate of one candidate on one offer, from its Programs: what every answer of a search is.

#include "predict/plan/search.h"

namespace systole {

// Its offer is 0. Errors: as programs_of.
Result<Estimated> estimate_candidate(const Workload& asked, const Target& target, const Candidate& candidate,
                                     const Offered& offered, double steps);

}  // namespace systole
