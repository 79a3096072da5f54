#pragma once
// A mesh that is not there: one graph run on all of its ranks in lockstep, node by node, with the collectives played
// among them. The oracle for everything cut: slow, and right by inspection.

#include <span>
#include <string>
#include <vector>

#include "describe/graph/ir.h"
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

// The outputs of each rank. REQUIRES: one list of inputs per rank, each of the graph's input types.
// Errors: Failure(invalid) when a collective's parts are not its axis's size.
PerRank evaluate_on(const FakeMesh& mesh, const Graph& graph, const PerRank& inputs);

// Part `index` of `parts` along `dim`. REQUIRES: parts divides its size.
HostTensor part_of(const HostTensor& tensor, int dim, std::int64_t index, std::int64_t parts);
HostTensor joined(std::span<const HostTensor> parts, int dim);
HostTensor summed(std::span<const HostTensor> tensors);  // in double, rounded once

}  // namespace systole
