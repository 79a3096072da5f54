#pragma once
// A contraction as a matrix unit does it: `batch` products of rows × summed by summed × columns.

#include <cstdint>

#include "describe/graph/ir.h"

namespace systole {

struct ProductDims {
  std::int64_t batch = 1, rows = 1, columns = 1, summed = 1;

  // Of a unit whose tiles are 8 rows, and 128 columns and terms: what does not fill one is done all the same. Which of
  // both operands gives the rows is the compiler's choice: the cheaper one.
  double filled_flops() const;
};

// REQUIRES: a contract.
ProductDims product_dims(const Graph& graph, const GraphNode& node);

}  // namespace systole
