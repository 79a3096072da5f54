#pragma once
// Places for values: offsets such that no two blocks that live at the same time overlap, greedily, largest first (the
// "greedy by size" of Pisarchyk and Lee, arXiv:2001.03288).

#include <functional>
#include <vector>

#include "describe/graph/program.h"

namespace systole {

struct Block {
  Bytes size;
  std::vector<std::pair<int, int>> lives;  // closed intervals of time, any order; disjoint times may share a place
  std::int64_t offset = 0;                 // the answer
};

// Sets the offsets, multiples of `alignment`; returns the end of the highest block.
Bytes place_blocks(std::vector<Block>& blocks, std::int64_t alignment);

// Plans the inside of a function: fills placement, scratch, activations and workspace.
// REQUIRES: own_outputs has run on the graph; `donated` is set. `workspace_of` gives the scratch bytes of a node.
using WorkspaceOf = std::function<Bytes(const Graph&, const GraphNode&)>;
void plan_scratch(Function& function, std::int64_t alignment, const WorkspaceOf& workspace_of);

// The operand (index) whose place result `r` of a node may take, were it the last use: by the op's declaration, and for
// a chain every operand that it reads element by element. Same size in bytes only.
std::vector<int> in_place_operands(const Graph& graph, const GraphNode& node, int result);

// Follows views to the value that holds the bytes.
ValueId storage_of(const Graph& graph, ValueId id);

std::int64_t aligned(std::int64_t bytes, std::int64_t alignment);

}  // namespace systole
