#pragma once
// The products of a graph as libraries and compilers run them. Products of one operand with several weights are one
// product (q, k and v; gate and up). Products whose results are only added together are one longer sum (their
// gradients).

#include <vector>

#include "predict/perf/product_dims.h"

namespace systole {

struct ProductGroup {
  ProductDims dims;
  std::vector<const GraphNode*> nodes;
};
// All contractions of the graph itself, not of its regions, in order.
std::vector<ProductGroup> product_groups(const Graph& graph);

}  // namespace systole
