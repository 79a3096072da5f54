#pragma once
// Builds the program of a chain (kernels/chain.h) from a region of elementwise ops and broadcasts, or from one such
// node: loads before first use, registers by last use, stores last (a result may alias an operand).

#include <string>
#include <vector>

#include "execute/backends/cpu/node_call.h"

namespace systole::cpu {

struct ChainProgram {
  std::vector<ChainStep> steps;
  std::int64_t n = 0;   // elements
  std::string refusal;  // the reason if no program is possible; else empty
};

// Slots: the region's inputs, then its outputs.
ChainProgram chain_of_region(const Graph& region);
// Slots: the node's operands, then its result.
ChainProgram chain_of_node(const NodeInfo& info);

}  // namespace systole::cpu
