#pragma once
// Memory planning: assigns offsets so that blocks with overlapping lifetimes do not overlap. Greedy, largest block
// first ("greedy by size", Pisarchyk and Lee, arXiv:2001.03288).

#include <functional>
#include <vector>

#include "describe/program/program.h"

namespace systole {

struct Block {
  Bytes size;
  std::vector<std::pair<int, int>> lives;  // lifetimes: closed intervals, in any order
  std::int64_t offset = 0;                 // set by place_blocks
};

// Sets the offsets, multiples of `alignment`; returns the end of the highest block.
Bytes place_blocks(std::vector<Block>& blocks, std::int64_t alignment);

// Plans a function's scratch: sets placement, scratch, activations and workspace. `workspace_of` gives the workspace
// bytes of a node. REQUIRES: own_outputs has run on the graph; `donated` is set.
using WorkspaceOf = std::function<Bytes(const Graph&, const GraphNode&)>;
void plan_scratch(Function& function, std::int64_t alignment, const WorkspaceOf& workspace_of);

// Indices of the operands that `result` may overwrite if the node is their last use: those that the op declares, and
// for a fused chain every operand that it reads elementwise. Only operands of the same size in bytes.
std::vector<int> in_place_operands(const Graph& graph, const GraphNode& node, int result);

std::int64_t aligned(std::int64_t bytes, std::int64_t alignment);

}  // namespace systole
