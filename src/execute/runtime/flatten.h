#pragma once
// A function as a flat list of kernel calls with resolved offsets: repeats unrolled, slices and carries turned into
// addresses, views gone. What devices that run kernel by kernel share.

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
