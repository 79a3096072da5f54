#pragma once
// The graphs that calibrate() times: a product, memory traffic, and kernels of few or many elementary functions.

#include "describe/ops/ops.h"

namespace systole {

inline constexpr std::int64_t kChainElements = 1 << 19;

Graph matmul_graph(DType dtype, std::int64_t n);
// layer_norm_grad: several flops per element and almost no elementary functions.
Graph kernel_graph();
Graph elementary_graph();  // of kChainElements
// z = x + y: two reads, one write, `bytes` in total.
Graph stream_graph(Bytes bytes);
// AdamW moves seven numbers per parameter; three of them are written in place.
Graph update_graph(Bytes bytes);

}  // namespace systole
