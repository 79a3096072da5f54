#pragma once
// How long the best kernels of an accelerator take for products and attention of a shape. docs/concepts/step-time.md
// says where the terms come from.

#include "describe/graph/ir.h"
#include "predict/perf/accelerator.h"
#include "predict/perf/product_dims.h"

namespace systole {

// On a GPU: of the tiles and cuts of the sum that libraries have, the one that is through first, when tiles that do not
// fill and waves that do not fill are counted. On a TPU: padded to the matrix unit. Never less than its bytes take.
// `element`: bytes of an operand.
double product_seconds(const Accelerator& chip, const ProductDims& dims, ProductType type);

// Attention that keeps no scores: `head` numbers a head, `rows` heads times batch, `queries` of each, `keys` that a
// query sees in the mean.
struct AttentionShape {
  std::int64_t rows = 1, queries = 1, keys_of_row = 1, head = 128;
  double keys = 1;
  bool causal = true;
};
double fused_attention_seconds(const Accelerator& chip, const Accelerator::Attention& kernel,
                               const AttentionShape& shape, bool backward);

// Attention by two products over all keys with the scores in memory between them.
struct UnfusedAttention {
  double products = 0, moved = 0;  // seconds
  double kernels = 0;
};
UnfusedAttention unfused_attention_seconds(const Accelerator& chip, const AttentionShape& shape, bool backward,
                                           ProductType type = ProductType::bf16);

// REQUIRES: an attention or attention_grad.
AttentionShape attention_shape(const Graph& graph, const GraphNode& node);

}  // namespace systole
