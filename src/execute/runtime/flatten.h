#pragma once
// Flattens a function to a list of kernel calls with resolved offsets: repeats are unrolled, slices and carries become
// addresses, views disappear, and work that is done ahead moves to the iteration before. Shared by the devices that run
// kernel by kernel.
//
// An overlapped collective (describe/program/overlap.h) begins at its place in the list. The first call that touches
// its memory before it is done waits for it (`after`); this follows from addresses alone, whatever the plan intended.
// Collectives that begin need no waits among each other, because they end in the order in which they begin. All must
// have ended at the end of the list.

#include <algorithm>
#include <vector>

#include "describe/program/program.h"
#include "execute/runtime/device.h"

namespace systole {

struct KernelCall {
  const Graph* graph;  // contains the node; the Function must outlive the call
  const GraphNode* node;
  std::vector<std::int64_t> operands, results;  // offsets in the memory
  std::int64_t workspace = -1;                  // -1: none
  Bytes workspace_bytes;
  std::vector<std::int64_t> layers;  // index in each enclosing repeat, outermost first
  bool begins = false;               // a collective that may end later
  int after = -1;                    // index of a begun collective that must end before this call; -1: none

  // The end of the highest byte that the call may touch.
  std::int64_t end() const {
    std::int64_t last = workspace >= 0 ? workspace + workspace_bytes.count() : 0;
    for (std::size_t i = 0; i < operands.size(); ++i)
      last = std::max(last, operands[i] + graph->type(node->operands[i]).bytes().count());
    for (std::size_t i = 0; i < results.size(); ++i)
      last = std::max(last, results[i] + graph->type(node->results[i]).bytes().count());
    return last;
  }
};

std::vector<KernelCall> flatten(const Function& function, const Addresses& addresses);

}  // namespace systole
