#pragma once
// The work of a node and of a graph: the ops' `work` facets, summed over nodes and through regions.

#include "describe/ir/op.h"

namespace systole {

// An operand that is passed twice is read once. A view moves nothing. A recomputed node has no model_flops.
Work work_of(const Graph& graph, const GraphNode& node);
Work work_of(const Graph& graph);

std::vector<Type> operand_types(const Graph& graph, const GraphNode& node);

}  // namespace systole
