#pragma once
// What a function needs to work in, at the least: out of its graph alone, in time that is linear in it, without places.

#include <vector>

#include "describe/graph/program.h"

namespace systole {

// Bytes of scratch that are in use while each node runs, in the order of the nodes, those of a repeat's body behind it:
// its results, operands that it reads last and cannot write over, and what later nodes read. No plan of the scratch has
// fewer (memory.h): what may lie in an input or output, or in another's place, is not counted, nor are workspaces.
// REQUIRES: as plan_scratch.
std::vector<std::int64_t> live_bytes(const Function& function);
// Of these the most that the body of a repeat has in use by itself.
std::int64_t most_live_in_repeats(const Function& function);

}  // namespace systole
