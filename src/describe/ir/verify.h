#pragma once
// The verifier of graphs; run_passes calls it. A graph that fails it is our own bug: it throws Failure(internal), which
// names the graph, the node and the violated rule. Rules: operands are defined before use and in range; results have
// the types that `infer` gives; regions verify; outputs are defined; input names are distinct.

#include "describe/ir/ir.h"

namespace systole {

void verify(const Graph& graph);

}  // namespace systole
