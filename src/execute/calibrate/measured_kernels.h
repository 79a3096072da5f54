#pragma once
// The kernels that calibrate() measures. Each is added to a graph that may hold several copies of it.

#include <span>
#include <string>
#include <string_view>

#include "describe/ops/ops.h"

namespace systole {

// Names of inputs and outputs in one copy.
struct Named {
  int copy;
  std::string operator()(const char* name) const { return fmt::format("{}{}", name, copy); }
};

// A matmul, `rows` × k by k × n, in a layout of predict/perf/machine_speed.h: "nn", "nt" or "tn".
void put_product(Graph& g, const Named& name, DType dtype, std::string_view layout, std::int64_t rows, std::int64_t k,
                 std::int64_t n);

// Causal attention of 8 rows of 256 tokens with `heads` heads of total width 256; and its gradient.
void put_attention(Graph& g, const Named& name, DType dtype, std::int64_t heads);
void put_attention_grad(Graph& g, const Named& name, DType dtype, std::int64_t heads);

// A fused chain of `steps` sums and products, with little memory traffic.
void put_sums(Graph& g, const Named& name, DType dtype, int steps, std::int64_t elements);

// Elementary functions that models use between matmuls. `op` is the name of the op.
struct NamedFunction {
  const char* op;
  Value (*make)(Value x);
};
std::span<const NamedFunction> measured_functions();

// Kernels over rows × n elements.
struct NamedKernel {
  const char* op;
  void (*make)(Graph& g, const Named& name, DType dtype, std::int64_t rows, std::int64_t n);
  bool by_row;  // the cost per row is measured too
};
std::span<const NamedKernel> measured_kernels();

}  // namespace systole
