#pragma once

#include "describe/ir/ir.h"

namespace systole {

// Replaces take_part(all_reduce(x)), a sum over one axis of which a device keeps its shard, with reduce_scatter(x).
Graph scatter_sums(const Graph& graph);

}  // namespace systole
