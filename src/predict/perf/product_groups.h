#pragma once
// Products of a graph as libraries and compilers do them: those of one operand with several weights as one product (q,
// k and v; gate and up), and those whose results are only added to each other as one longer sum (their gradients).

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
