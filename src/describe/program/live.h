#pragma once
// Lower bound on a function's scratch memory, before offsets are assigned. Linear time, from the graph alone.

#include <vector>

#include "describe/program/program.h"

namespace systole {

// Live scratch bytes while each node runs, in the order of the nodes; the nodes of a repeat's body follow the repeat.
// Counted are the node's results, operands that it reads last and cannot overwrite, and values that later nodes read.
// Not counted are workspaces, and values that may lie in an input, an output or another value's place. So no plan of
// the scratch (memory.h) has fewer bytes. REQUIRES: as plan_scratch.
std::vector<std::int64_t> live_bytes(const Function& function);
// The maximum of live_bytes over nodes inside repeats, less what was live around the repeat.
std::int64_t most_live_in_repeats(const Function& function);

}  // namespace systole
