#pragma once
// The verifier: run after every pass and after reading text. A graph that fails it is our own bug, so it throws
// Failure(internal) that names the graph, the node and what does not hold: operands defined before their use and in
// range, results of the types that `infer` gives now, regions verified in turn, outputs in range, input names distinct.

#include "describe/graph/ir.h"

namespace systole {

void verify(const Graph& graph);

}  // namespace systole
