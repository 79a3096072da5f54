#pragma once

#include "describe/graph/ir.h"

namespace systole {

// A sum of which each device only takes its part is scattered at once: take_part of an all_reduce is a reduce_scatter.
Graph scatter_sums(const Graph& graph);

}  // namespace systole
