#pragma once
// Makes the program of a chain (kernels/chain.h) from a region of elementwise ops and broadcasts, or from one such
// node: loads where they are first needed, registers by last use, stores last (a result may lie where an operand does).

#include <string>
#include <vector>

#include "execute/backends/cpu/node_call.h"

namespace systole::cpu {

struct ChainProgram {
  std::vector<ChainStep> steps;
  std::int64_t n = 0;   // elements
  std::string refusal;  // why there is none; empty when there is
};

// Slots: the region's inputs, then its outputs.
ChainProgram chain_of_region(const Graph& region);
// Slots: the node's operands, then its result.
ChainProgram chain_of_node(const NodeInfo& info);

}  // namespace systole::cpu
