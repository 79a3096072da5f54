#pragma once
// The targets that are to run a plan: which offers they cannot run, by the target table, and what they make of the
// choice.

#include <span>
#include <string>
#include <vector>

#include "describe/spec/target_needs.h"
#include "predict/plan/offers.h"

namespace systole {

// An offer that no target can run: the first of its accelerator.
struct BarredOffer {
  ClusterOffer offer;
  Error why;  // of the first target, without the offer's name
};
// Takes the offers that none of `targets` can run out of `offers`, unless there are no targets. Errors: unsupported:
// none is left, with the reason and the targets that can run it.
Result<std::vector<BarredOffer>> bar_offers(const Workload& workload, std::span<const JobTargetRow* const> targets,
                                            std::vector<ClusterOffer>& offers);

// What a target that can run an offer does for it.
struct TargetNote {
  std::string target, words;  // "slurm", "a cluster of Slurm has its machines already"
};
std::vector<TargetNote> target_notes(const Workload& workload, std::span<const JobTargetRow* const> targets,
                                     const ClusterOffer& offer);

}  // namespace systole
