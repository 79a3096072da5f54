#pragma once
// A contraction as a matrix unit does it: `batch` products of rows × summed by summed × columns.

#include <cstdint>

#include "describe/graph/ir.h"
#include "ground/base/units.h"

namespace systole {

struct ProductDims {
  std::int64_t batch = 1, rows = 1, columns = 1, summed = 1;

  // Of a unit whose tiles are 8 rows, and 128 columns and terms: what does not fill one is done all the same. Which of
  // both operands gives the rows is the compiler's choice: the cheaper one.
  double filled_flops() const;
  // Where the smaller operand outgrows half of the chip's own memory (the other half is for what comes next), no block
  // of results finds all that it is made of there: so many bytes of operands, over the side of a block, pass on their
  // way to the unit. Else nothing.
  double streamed_bytes(std::int64_t element, Bytes on_chip) const;
};

// REQUIRES: a contract.
ProductDims product_dims(const Graph& graph, const GraphNode& node);

}  // namespace systole
