#pragma once
// The time of products and attention of a shape with the best kernels of an accelerator. docs/concepts/step-time.md has
// the formulas and their sources.

#include "describe/ir/ir.h"
#include "predict/perf/accelerator.h"
#include "predict/perf/product_dims.h"

namespace systole {

// GPU: the fastest of the tile shapes and split-k factors that libraries have, counting partly filled tiles and waves.
// TPU: dims padded to the matrix unit. Never less than the time of its bytes.
double product_seconds(const Accelerator& chip, const ProductDims& dims, ProductType type);
// As decoding has them: a GPU's products of few rows or columns go to kernels of their own (gemv, split-k), which pad
// them to 8 instead of to a tile.
double narrow_product_seconds(const Accelerator& chip, const ProductDims& dims, ProductType type);

// `rows`: heads × batch. `queries`, `keys_of_row`: of each row. `head`: elements of a head. `keys`: that a query sees
// on average.
struct AttentionShape {
  std::int64_t rows = 1, queries = 1, keys_of_row = 1, head = 128;
  double keys = 1;
  bool causal = true;
};
double fused_attention_seconds(const Accelerator& chip, const Accelerator::Attention& kernel,
                               const AttentionShape& shape, bool backward);

// Unfused attention: two products over all keys, with the scores in memory between them.
struct UnfusedAttention {
  double products = 0, moved = 0;  // seconds
  double kernels = 0;
};
UnfusedAttention unfused_attention_seconds(const Accelerator& chip, const AttentionShape& shape, bool backward,
                                           ProductType type = ProductType::bf16);

// REQUIRES (both): `node` is an attention, attention_grad or paged_attention.
// Whether a row has one query, as in decoding: it does few FLOPs for each byte of keys and values that it reads.
bool has_one_query(const Graph& graph, const GraphNode& node);
AttentionShape attention_shape(const Graph& graph, const GraphNode& node);

}  // namespace systole
