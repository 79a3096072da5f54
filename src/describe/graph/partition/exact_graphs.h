#pragma once
// The graphs of exact training (exact.h): sums of workers joined in the order of the tree, losses, and the global norm.
//
// What a worker has of a gradient are subtrees in slots, slot i of worker 2 another subtree than slot i of worker 0,
// and some workers have a slot less. Slot by slot all workers exchange blocks (all_to_all): the owner of a block gets
// every worker's slot of it, zeros where there is none, and adds what stands for something. So all workers run the same
// collectives, whatever they own; what pads them is sent, and counted.

#include <optional>
#include <string>
#include <vector>

#include "describe/graph/ir.h"
#include "describe/graph/partition/training_layouts.h"

namespace systole {

// The workers: all devices, numbered along `all`.
struct ExactWorkers {
  std::string all;  // axes; that along which things are stored in parts first: "fsdp,data"
  std::int64_t count = 1;
  std::int64_t parts = 1;   // along the store axis
  std::string copies_axes;  // the other axes
  std::int64_t copies = 1;  // along them
  std::int64_t me = 0;      // the worker that the device is
};
// Errors: Failure(invalid): an axis that does not cut rows; more workers than shards.
ExactWorkers exact_workers(const TrainingLayouts& layouts, int shards, std::int64_t device);

// The sum of all shards out of this worker's subtrees `mine`, whole; or, of a dim that is stored in parts, its part.
// REQUIRES: workers.count > 1; cut_dim < 0 or workers.parts > 1.
Value summed_over_shards(Graph& graph, std::vector<Value> mine, const Type& whole, int cut_dim, int shards,
                         const ExactWorkers& workers);

// The sum of all shards' losses, scalars; `mine`: this worker's, in order.
Value loss_over_shards(Graph& graph, std::vector<Value> mine, DType dtype, int shards, const ExactWorkers& workers);

// Elements of a block of the norm.
constexpr std::int64_t kNormBlock = 65'536;

// The sum of squares of all gradients, whole ones: of each logical tensor by blocks in the order of its elements, and
// the blocks by the binary tree over them. `layers`: how many logical tensors lie in each, one behind the other.
Value squares_by_blocks(const std::vector<Value>& gradients, const std::vector<std::int64_t>& layers);

}  // namespace systole
