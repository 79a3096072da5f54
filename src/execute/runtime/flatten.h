#pragma once
// A function as a flat list of kernel calls with resolved offsets: repeats unrolled, slices and carries turned into
// addresses, views gone, what is done ahead put in the iteration before. What devices that run kernel by kernel share.
//
// A collective that overlaps others (describe/graph/overlap.h) begins where it stands in the list. The first call that
// reads or writes what it has not done with says so, by addresses, whatever the plan meant; those that begin need not
// say it of each other, for they end in the order in which they began. At the end of the list all must have ended.

#include <algorithm>
#include <vector>

#include "describe/graph/program.h"
#include "execute/runtime/device.h"

namespace systole {

struct KernelCall {
  const Graph* graph;  // that holds the node; of the Function, which must outlive the call
  const GraphNode* node;
  std::vector<std::int64_t> operands, results;  // offsets in the memory
  std::int64_t workspace = -1;                  // -1: none
  Bytes workspace_bytes;
  std::vector<std::int64_t> layers;  // the index of each repeat around it, outermost first
  bool begins = false;               // a collective that need not end here
  int after = -1;                    // in the list: one that began, and must have ended before this call; -1: none

  // Where the highest of the places that it is given ends.
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
