#pragma once
// A function as a flat list of kernel calls with resolved offsets: repeats unrolled, slices and carries turned into
// addresses, views gone. What devices that run kernel by kernel share.

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
};

std::vector<KernelCall> flatten(const Function& function, const Addresses& addresses);

}  // namespace systole
