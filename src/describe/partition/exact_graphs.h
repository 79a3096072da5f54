#pragma once
// The graphs of exact training (exact.h): the reduction over workers in tree order, losses, and the global norm.
//
// A worker holds subtree sums of a gradient in slots. Slot i means different subtrees on different workers, and some
// workers have one slot fewer. Per slot, one all_to_all exchanges blocks: the owner of a block receives every worker's
// slot, zeros where a worker has none, and adds the real ones. So all workers run the same collectives, whatever they
// own; the padding is sent, and counted.

#include <optional>
#include <string>
#include <vector>

#include "describe/ir/ir.h"
#include "describe/partition/training_layouts.h"

namespace systole {

// The workers: all devices, numbered along `all`.
struct ExactWorkers {
  std::string all;  // all axes, the store axis (ZeRO) first: "fsdp,data"
  std::int64_t count = 1;
  std::int64_t parts = 1;   // size of the store axis
  std::string copies_axes;  // the other axes
  std::int64_t copies = 1;  // product of their sizes
  std::int64_t me = 0;      // this device's worker number
};
// Errors: Failure(unsupported): an axis that shards more than rows; Failure(invalid): more workers than shards.
ExactWorkers exact_workers(const TrainingLayouts& layouts, int shards, std::int64_t device);

// The sum over all shards, from this worker's subtrees `mine`: whole, or this worker's part of the sharded dim
// `cut_dim`. REQUIRES: workers.count > 1; cut_dim < 0 or workers.parts > 1.
Value summed_over_shards(Graph& graph, std::vector<Value> mine, const Type& whole, int cut_dim, int shards,
                         const ExactWorkers& workers);

// The sum of all shards' losses, scalars. `mine`: the losses of this worker's shards, in order.
Value loss_over_shards(Graph& graph, std::vector<Value> mine, DType dtype, int shards, const ExactWorkers& workers);

// The sum of squares of all gradients, which are whole: per logical tensor in blocks, in the order of its elements,
// then over all blocks along a binary tree. `layers`: per gradient, the number of logical tensors stacked in it.
Value squares_by_blocks(const std::vector<Value>& gradients, const std::vector<std::int64_t>& layers);

}  // namespace systole
