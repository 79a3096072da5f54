#pragma once
// The work of a node and of a graph: what the ops' `work` facets say, summed through regions.

#include "describe/graph/op.h"

namespace systole {

// An operand given twice is read once. A view moves nothing. A recomputed node has no model_flops.
Work work_of(const Graph& graph, const GraphNode& node);
Work work_of(const Graph& graph);

std::vector<Type> operand_types(const Graph& graph, const GraphNode& node);
std::vector<Type> result_types(const Graph& graph, const GraphNode& node);

}  // namespace systole
