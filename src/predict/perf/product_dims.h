#pragma once
// A contraction as matrix products: `batch` times [rows, summed] by [summed, columns].

#include <cstdint>

#include "describe/ir/ir.h"
#include "ground/base/units.h"
#include "predict/perf/machine_speed.h"

namespace systole {

struct ProductDims {
  std::int64_t batch = 1, rows = 1, columns = 1, summed = 1;

  // FLOPs with dims padded to the tiles of a TPU's matrix unit: 8 rows, 128 columns, 128 terms. The compiler chooses
  // which operand gives the rows: the cheaper one.
  double filled_flops() const;
  // If the smaller operand outgrows half of the chip's own memory (the other half is for prefetching), operands stream
  // in for each block of results. Divided by the side of a block, this is their bytes. Else 0. `element`: bytes of one.
  double streamed_bytes(std::int64_t element, Bytes on_chip) const;
};

// REQUIRES: `node` is a contract.
ProductDims product_dims(const Graph& graph, const GraphNode& node);
ProductLayout product_layout(const GraphNode& node);

}  // namespace systole
