#pragma once
// What a collective costs by each algorithm, and which one to take: pure functions, so that the partitioner, the cost
// model and the communicator make one choice.
//
// The cost is the sum over the steps of
//
//   latency · (1 + (m − 1) / 8) + b / bandwidth
//
// m the most messages and b the most bytes that one rank sends, or receives, in the step: the links are taken to be
// those of the ranks, each rank's the same, and any two ranks linked. An eighth of a latency is what one more message
// of a step is taken to cost: the gap of LogP (Culler et al., 1993) without a measurement of its own.

#include <span>

#include "ground/mesh/collective.h"
#include "ground/tensor/dtype.h"

namespace systole {

// Of the links that a mesh axis runs over.
struct LinkCost {
  Seconds latency;
  BytesPerSecond bandwidth;
};

// By the list itself: the slow, obvious twin. Every step over the same link.
Seconds cost_of(const std::vector<Transfer>& transfers, const LinkCost& link);

// The same in closed form, so that 16,384 ranks cost no more to price than two; chunks (and the blocks of halving and
// doubling) are taken to be equal. `links`: one for each of the collective's axes, outermost first, or one for all; a
// step over several axes takes the slowest latency and the slowest bandwidth.
// REQUIRES: the algorithm carries out the kind.
Seconds cost_of(const Collective& collective, CollectiveAlgorithm algorithm, std::span<const LinkCost> links);

// More ranks than these do not speak directly, each with each, if there is another way: links into one rank would
// overflow, and each rank would keep a connection to every other.
constexpr std::int64_t kMostDirectRanks = 64;

// The cheapest; of equals the one that algorithms_of names first. Sums of bf16 and f16 are added in f32 and rounded
// once, which only `direct` can do, of however many ranks.
// REQUIRES: links as above.
CollectiveAlgorithm choose_algorithm(const Collective& collective, DType dtype, std::span<const LinkCost> links);
CollectiveAlgorithm choose_algorithm(const Collective& collective, DType dtype, Seconds latency,
                                     BytesPerSecond bandwidth);

}  // namespace systole
