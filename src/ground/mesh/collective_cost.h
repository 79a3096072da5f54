#pragma once
// The cost of a collective by each algorithm, and the choice of the cheapest. Pure functions, so that the partitioner,
// the cost model and the communicator make the same choice.
//
// The cost is the sum over the steps of
//
//   latency · (1 + (m − 1) / 8) + b / bandwidth
//
// m is the largest number of messages and b the largest number of bytes that one rank sends, or receives, in the step.
// The model: each rank has its own link, all links are equal, and any two ranks are connected. Each further message of
// a step costs an eighth of a latency: an assumed value for the gap of LogP (Culler et al., 1993).

#include <span>

#include "ground/mesh/collective.h"
#include "ground/tensor/dtype.h"

namespace systole {

// The links of one mesh axis.
struct LinkCost {
  Seconds latency;
  BytesPerSecond bandwidth;
};

// By definition, from the list: slow but obviously right. All steps use the same link.
Seconds cost_of(const std::vector<Transfer>& transfers, const LinkCost& link);

// The same in closed form, so that 16,384 ranks take no longer to price than two. Assumes equal chunks (and equal
// blocks of halving and doubling). `links`: one per axis of the collective, outermost first, or one for all. A step
// over several axes has the highest latency and the lowest bandwidth of them.
// REQUIRES: the algorithm implements the kind.
Seconds cost_of(const Collective& collective, CollectiveAlgorithm algorithm, std::span<const LinkCost> links);

// Above this number of ranks, direct all-pairs traffic is avoided if another algorithm exists: it would overload the
// links into one rank, and each rank would need a connection to every other.
constexpr std::int64_t kMostDirectRanks = 64;

// The cheapest algorithm; ties go to the first in algorithms_of. Sums of bf16 and f16 are added in f32 and rounded
// once; only `direct` can do that, for any number of ranks.
// REQUIRES: links as above.
CollectiveAlgorithm choose_algorithm(const Collective& collective, DType dtype, std::span<const LinkCost> links);
CollectiveAlgorithm choose_algorithm(const Collective& collective, DType dtype, Seconds latency,
                                     BytesPerSecond bandwidth);

}  // namespace systole
