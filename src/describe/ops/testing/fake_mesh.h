#pragma once
// A simulated mesh: runs one graph on all ranks in lockstep, node by node, and exchanges collectives between them. The
// reference for everything sharded: slow and obviously right.

#include <span>
#include <string>
#include <vector>

#include "describe/ir/ir.h"
#include "ground/tensor/buffer.h"

namespace systole {

// Ranks are row-major over the axes, the first axis outermost.
struct FakeMesh {
  std::vector<std::string> axes;
  std::vector<std::int64_t> sizes;

  std::int64_t num_ranks() const;
  std::int64_t coordinate(std::int64_t rank, std::size_t axis) const;
  std::int64_t moved(std::int64_t rank, std::size_t axis,
                     std::int64_t coordinate) const;    // the rank with that coordinate
  std::size_t axis_named(std::string_view name) const;  // Failure(not_found)
};

using PerRank = std::vector<std::vector<HostTensor>>;  // [rank][input or output]

// Returns the outputs of each rank. REQUIRES: one list of inputs per rank, of the graph's input types.
// Errors: Failure(invalid) when a collective's `parts` is not the size of its axis.
PerRank evaluate_on(const FakeMesh& mesh, const Graph& graph, const PerRank& inputs);

// Part `index` of `parts` along `dim`. REQUIRES: parts divides the size of dim.
HostTensor part_of(const HostTensor& tensor, int dim, std::int64_t index, std::int64_t parts);
HostTensor joined(std::span<const HostTensor> parts, int dim);
HostTensor summed(std::span<const HostTensor> tensors);  // added in double, rounded once

}  // namespace systole
